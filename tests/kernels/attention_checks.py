"""The attention kernels against softmax(scale q k^T) v, written here once in numpy and evaluated in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.kernels.checks import agree
from tests.kernels.drivers import Job
from tests.tolerances import KERNEL_F16_WEIGHT, KERNEL_SCORE_ROUNDING, PATTERN_ROW_SUM
from webgpu import ops
from webgpu.dispatch import Dispatch, fold
from webgpu.variants import VARIANTS


@dataclass(frozen=True)
class Attention:
    """One attention call. S = offset + T keys unless given; magnitude multiplies q."""

    T: int
    N: int
    K: int
    H: int
    offset: int = 0
    window: int = 0
    sinks: int = 0
    magnitude: float = 1.0
    S: int | None = None
    variant: str | None = None  # of the operation that has one of that name; the other takes its first
    most_flops: int | None = None  # 1: each workgroup is a dispatch of its own

    @property
    def sizes(self) -> dict:
        """The keyword arguments that webgpu.ops takes."""
        S = self.offset + self.T if self.S is None else self.S
        return {
            "T": self.T,
            "S": S,
            "N": self.N,
            "K": self.K,
            "H": self.H,
            "offset": self.offset,
            "window": self.window,
            "sinks": self.sinks,
            "scale": self.H**-0.5,
        }

    @property
    def chosen(self) -> str | None:
        """The variant to force."""
        names = {each.name for each in VARIANTS[ops.attention_operation(self.T)]}
        return self.variant if self.variant in names else None

    def arrays(self) -> dict[str, np.ndarray]:
        """Seeded q [T,N,H], k and v [S,K,H] in float32."""
        rng, S = np.random.default_rng(7), self.sizes["S"]
        q, k, v = (rng.standard_normal(s, "f4") for s in ((self.T, self.N, self.H), *[(S, self.K, self.H)] * 2))
        if self.variant == "tile_f16":  # stores k and v as f16: numbers that f16 holds, so that nothing else may be off
            k, v = (x.astype("f2").astype("f4") for x in (k, v))
        return {"q": q * np.float32(self.magnitude), "k": k, "v": v}


def visible(c: Attention) -> np.ndarray:
    """[T,S] bool: may query t (at offset + t) see key s."""
    position, s = c.offset + np.arange(c.T)[:, None], np.arange(c.sizes["S"])[None]
    return (s <= position) & ((c.window == 0) | (position - s < c.window) | (s < c.sinks))


def attention_formula(c: Attention, a: dict[str, np.ndarray], dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """softmax(scale q k^T) v, plainly: o [T,N,H], lse [N,T], pattern [N,T,S]."""
    q, k, v = (a[name].astype(dtype).transpose(1, 0, 2) for name in "qkv")
    k, v = np.repeat(k, c.N // c.K, 0), np.repeat(v, c.N // c.K, 0)
    scores = q @ k.transpose(0, 2, 1) * np.dtype(dtype).type(c.H**-0.5)
    scores = np.where(visible(c), scores, np.dtype(dtype).type(-1e30))
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top) * visible(c)
    total = e.sum(-1, keepdims=True)
    pattern = e / np.where(total == 0, 1, total)
    lse = np.where(total == 0, -1e30, top + np.log(np.where(total == 0, 1, total)))
    return (pattern @ v).transpose(1, 0, 2), lse[..., 0], pattern


def run_attention(driver, c: Attention, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run attention and the whole pattern -> o, lse, pattern."""
    s = c.sizes
    shape = (c.N, c.T, s["S"])
    window = {
        "head0": 0,
        "heads": c.N,
        "row0": 0,
        "rows": c.T,
        "col0": 0,
        "cols": s["S"],
        "out_rows": c.T,
        "out_cols": s["S"],
    }
    dispatches = [
        *ops.attention("q", "k", "v", "o", "lse", **s, scratch="scratch", variant=c.chosen, most_flops=c.most_flops),
        *ops.attention_probs("q", "k", "lse", "pattern", **s, **window, reduce="max"),
    ]
    if any(dispatch.kernel == "attention_images" for dispatch in dispatches):
        more, q_width = s["S"] + 8, c.N * c.H // 4
        dispatches.insert(0, _poisoned_images(more, q_width, c.K * c.H // 4))
        arrays = {**arrays, "nan": np.full((more, q_width, 4), np.nan, "f4")}
    outputs = {"o": ("f4", (c.T, c.N, c.H)), "lse": ("f4", (c.N, c.T)), "pattern": ("f4", shape)}
    scratch = ops.attention_scratch(T=c.T, S=s["S"], N=c.N, H=c.H)
    return driver.run(Job(dispatches, arrays, outputs, {"scratch": scratch}, ("pattern",)))


def _poisoned_images(S: int, q_width: int, width: int) -> Dispatch:
    """What a longer text would leave in the images: rows that nobody may read."""
    sizes = {"T": S, "q_width": q_width, "S": S, "width": width}
    images = {f"{name}_image": f"{name}_image:{width}*{S}" for name in "kv"}
    images["q_image"] = f"q_image:{q_width}*{S}"
    return Dispatch("attention_images", {}, sizes, fold(S), dict.fromkeys("qkv", "nan") | images)


def check_attention(driver, c: Attention) -> None:
    """o, lse and pattern agree with the formula, and every row that sees a key sums to 1."""
    arrays = c.arrays()
    got = run_attention(driver, c, arrays)
    exact, plain = attention_formula(c, arrays, "f8"), attention_formula(c, arrays, "f4")
    seen = visible(c).any(-1)
    stored = KERNEL_F16_WEIGHT * np.abs(arrays["v"]).max() if c.chosen == "tile_f16" else 0.0
    agree("o", got["o"], exact[0], plain[0], stored)
    agree("lse", got["lse"][:, seen], exact[1][:, seen], plain[1][:, seen])
    rounding = KERNEL_SCORE_ROUNDING * np.abs(exact[1][:, seen]).max(initial=0)
    agree("pattern", got["pattern"], exact[2], plain[2], rounding)
    assert not got["o"][~seen].any(), "a row that sees nothing has an output"
    assert (got["lse"][:, ~seen] == np.float32(-1e30)).all(), "a row that sees nothing has lse other than -1e30"
    sums = got["pattern"].astype("f8").sum(-1)
    off = np.abs(sums[:, seen] - 1).max(initial=0)
    assert off <= PATTERN_ROW_SUM + rounding, f"a row of the pattern sums to 1 within {off:.3g} only"
    assert not sums[:, ~seen].any(), "a row that sees nothing has weights"


def check_growing_images(driver) -> None:
    """Several lengths and widths in one pass: a larger image takes the place of one that is bound already."""
    calls = [Attention(9, K, K, H=16, offset=offset, variant="texels") for offset, K in ((2991, 1), (6991, 3), (31, 2))]
    dispatches, inputs, outputs = [], {}, {}
    for i, c in enumerate(calls):
        names = {name: f"{name}{i}" for name in ("q", "k", "v", "o", "lse")}
        inputs |= {names[name]: array for name, array in c.arrays().items()}
        outputs |= {names["o"]: ("f4", (c.T, c.N, c.H)), names["lse"]: ("f4", (c.N, c.T))}
        dispatches += ops.attention(**names, **c.sizes, variant="texels")
    got = driver.run(Job(dispatches, inputs, outputs))
    for i, c in enumerate(calls):
        exact, plain = attention_formula(c, c.arrays(), "f8"), attention_formula(c, c.arrays(), "f4")
        agree("o", got[f"o{i}"], exact[0], plain[0])
        agree("lse", got[f"lse{i}"], exact[1], plain[1])
