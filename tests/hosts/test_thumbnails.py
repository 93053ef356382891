"""The wall's thumbnails: all heads of some layers in one query, the same pixels as window by window.

Plan: both reductions, models with and without a sliding window, in one part and in several; the page's host in Chromium
alike, cancelled in the middle, after which no buffer is left; refusals.
"""

import numpy as np
import pytest

from tests.checkpoints import checkpoint
from tests.tolerances import HOST_WINDOW_MEAN
from webgpu import queries
from webgpu.trace import BadQuery

IDS = np.random.default_rng(7).integers(0, 321, 150).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("wall_flops", [queries.WALL_FLOPS, 1])
@pytest.mark.parametrize("reduce", ["max", "mean"])
@pytest.mark.parametrize("name", ["llama-gqa", "qwen2-sliding"])
def test_thumbnails_equal_windows(name, reduce, wall_flops, load, monkeypatch):
    monkeypatch.setattr(queries, "WALL_FLOPS", wall_flops)
    trace = load(checkpoint(name).folder).run(IDS)
    L, N, T = (trace.shape[letter] for letter in "LNT")
    parts = list(trace.thumbnails(17, reduce))
    assert [layer0 for layer0, _ in parts] == (list(range(L)) if wall_flops == 1 else [0])
    whole = np.concatenate([part for _, part in parts])
    assert whole.shape == (L, N, 17, 17)
    for layer in range(L):
        window = trace.window(layer, 0, N, 0, T, 0, T, 17, 17, reduce)
        np.testing.assert_allclose(whole[layer], window, atol=0 if reduce == "max" else HOST_WINDOW_MEAN, rtol=0)
    assert whole.any((1, 2, 3)).all()
    trace.destroy()


@pytest.mark.gpu
def test_thumbnails_refuse_what_is_no_thumbnail(load):
    trace = load(checkpoint("llama-gqa").folder).run(IDS)
    for out, reduce in ((0, "max"), (151, "max"), (17, "median")):
        with pytest.raises(BadQuery):
            next(trace.thumbnails(out, reduce))
    next(trace.thumbnails(150, "max"))
    trace.destroy()


@pytest.mark.chromium
@pytest.mark.slow
def test_thumbnails_in_the_page_equal_windows_and_stop_when_told(llama):
    script = """async (ids) => {
      const trace = await model.run(ids);
      const { L, N, T } = trace.shape;
      const whole = { head0: 0, heads: N, row0: 0, rows: T, col0: 0, cols: T, outRows: 17, outCols: 17 };
      const thumbs = [];
      for await (const { data } of trace.thumbnails({ out: 17 })) thumbs.push(...data);
      const windows = [];
      for (let layer = 0; layer < L; layer++) windows.push(...await trace.window({ layer, ...whole }));
      const control = new AbortController();
      const before = Buffers.live;
      const fill = async () => {
        for await (const part of trace.thumbnails({ out: 17 }, control.signal));
        return "ran on";
      };
      const stopped = fill().catch((error) => error.message);
      control.abort(new Error("a newer prompt"));
      const reason = await stopped;
      const left = Buffers.live - before;
      trace.destroy();
      return [thumbs, windows, reason, left];
    }"""
    thumbs, windows, reason, left = llama.ask(script, IDS)
    assert thumbs == windows and any(thumbs)
    assert (reason, left) == ("a newer prompt", 0)
