"""The page's JSDoc types hold under the strict checker, and its pure parts do what they say."""

import json
import subprocess

from tests.page.harness import ROOT

STATIC = ROOT / "static"


def test_types_hold(node: str):
    done = subprocess.run(
        [node, str(STATIC / "node_modules" / "typescript" / "bin" / "tsc"), "-p", str(STATIC)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def run(node: str, script: str) -> object:
    done = subprocess.run(
        [node, "--input-type=module", "-e", script], cwd=STATIC, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_lib_imports_nothing_from_outside():
    for path in sorted((STATIC / "lib").glob("*.js")):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("import "):
                assert ' "./' in line, f"{path.name}: {line}"


def test_pixel_covers_its_cells_and_every_cell_has_a_pixel(node: str):
    script = """
      import { cellsOfPixel } from './lib/maths.js';
      const bad = [];
      for (const [total, out] of [[10, 3], [14, 14], [1000, 37], [5, 5], [257, 64]]) {
        let next = 0;
        for (let i = 0; i < out; i++) { const [a, b] = cellsOfPixel(i, total, out); if (a !== next || b <= a) bad.push([total, out, i]); next = b; }
        if (next !== total) bad.push([total, out]);
      }
      console.log(JSON.stringify(bad));
    """
    assert run(node, script) == []


def test_cividis_ends_and_ink_contrast(node: str):
    script = """
      import { cividis, inkOn } from './lib/colours.js';
      const lum = (c) => { const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const worst = Math.min(...Array.from({length: 256}, (_, i) => { const c = cividis(i / 255); const ink = inkOn(c) === '#000' ? 0 : 1; const [a, b] = [lum(c), ink].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); }));
      console.log(JSON.stringify([cividis(0), cividis(1), cividis(NaN), worst]));
    """
    first, last, nan, worst = run(node, script)
    assert [first, last, nan] == [[0, 34, 78], [254, 232, 56], [0, 34, 78]]
    assert worst >= 4.5


def test_links_survive_a_round_trip_and_hostile_text(node: str):
    script = """
      import { DEFAULT_VIEW, readLink, writeLink } from './lib/permalink.js';
      const view = {...DEFAULT_VIEW, model: 'a-b.c', prompt: 'x &=#%\\u{1F44D}\\n', layer: 3, head: 0, token: 2, key: 1, scale: 'sqrt', noFirst: true,
        lock: false, view: 'table', zoom: [1, 2, 3, 4], depth: 0, target: 77};
      const back = readLink('#' + writeLink(view));
      const bad = readLink('#l=-1&z=1,2&v=no&p=%&q=1&s');
      console.log(JSON.stringify([JSON.stringify(back.view) === JSON.stringify(view), back.unread, writeLink(DEFAULT_VIEW), bad.unread, JSON.stringify(bad.view) === JSON.stringify(DEFAULT_VIEW)]));
    """
    same, unread, default, bad, defaults = run(node, script)
    assert (same, unread, default, defaults) == (True, [], "", True)
    assert bad == ["layer", "zoom", "view", "prompt", "an unknown field", "scale"]


def test_window_in_javascript_masks_and_normalises(node: str):
    script = """
      import { patternWindow } from './lib/windows.js';
      import { blockMasked, withoutFirst } from './lib/pattern.js';
      const [T, N, K, H] = [9, 2, 1, 4];
      const rand = (n, s) => Float32Array.from({length: n}, (_, i) => Math.sin(i * 12.9 + s));
      const q = rand(T * N * H, 1), k = rand(T * K * H, 2), lse = new Float32Array(N * T);
      const rule = {window: 3, sinks: 1};
      for (let n = 0; n < N; n++) for (let t = 0; t < T; t++) {
        let sum = 0;
        for (let s = 0; s <= t; s++) if (t - s < 3 || s < 1) { let dot = 0; for (let i = 0; i < H; i++) dot += q[(t * N + n) * H + i] * k[s * H + i]; sum += Math.exp(dot / 2); }
        lse[n * T + t] = Math.log(sum);
      }
      const whole = patternWindow({q, k, lse}, {T, N, K, H}, rule, {head0: 0, heads: N, row0: 0, rows: T, col0: 0, cols: T, outRows: T, outCols: T, reduce: 'max'});
      let worst = 0, masked = 0;
      for (let r = 0; r < N * T; r++) { let sum = 0; for (let s = 0; s < T; s++) sum += whole[r * T + s]; worst = Math.max(worst, Math.abs(sum - 1)); }
      for (let t = 0; t < T; t++) for (let s = 0; s < T; s++) if (blockMasked(t, t + 1, s, s + 1, rule) !== (whole[t * T + s] === 0)) masked++;
      const without = withoutFirst(whole.subarray(0, T * T), {row0: 0, rows: T, col0: 0, cols: T}, Array.from({length: T}, (_, t) => whole[t * T]));
      let again = 0; for (let s = 1; s < T; s++) again += without[5 * T + s];
      console.log(JSON.stringify([worst, masked, again, Number.isNaN(without[0])]));
    """
    worst, masked, again, first = run(node, script)
    assert worst < 1e-6
    assert masked == 0
    assert abs(again - 1) < 1e-6
    assert first is True
