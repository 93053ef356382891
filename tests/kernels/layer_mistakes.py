"""Mistakes planted in what a layer does besides attention: rotation, norms, gates, adding to the residual stream."""

from tests.kernels import checks
from webgpu.ops import F32, Q4_1


def rope(driver):
    checks.check_rope(driver, 5, 4, 2, 16, 2, normed=True)


def norm(driver):
    checks.check_rmsnorm(driver, 3, 20)


def qk_norm(driver):
    checks.check_qk_norm(driver, 5, 4, 2, 16)


def swiglu(driver):
    checks.check_swiglu(driver, 3, 21)


def product(fmt=F32, **how):
    return lambda driver: checks.check_matmul(driver, 9, 64, 20, fmt, residual=True, **how)


MISTAKES = {
    "rotation sign": ("rope", "a * c - b * s", "a * c + b * s", rope),
    "rotation of neighbours": ("rope", "x[at + half]", "x[at + 1]", rope),
    "rotated keys ignore their row": (
        "rope",
        "(p.out_row0 + t) * p.K + head - p.N) * p.H",
        "t * p.K + head - p.N) * p.H",
        rope,
    ),
    "values ignore their row": (
        "rope",
        "(p.out_row0 + t) * p.K + head - p.N - p.K",
        "t * p.K + head - p.N - p.K",
        rope,
    ),
    "values are the last query heads": ("rope", "v[to] = qkv[at]", "v[to] = qkv[at - p.K * p.H]", rope),
    "normed heads at the stride of others": ("rope", "t * p.stride +", "t * heads * p.H +", rope),
    "keys normed like queries": ("rmsnorm", "head >= p.N", "head > 99", qk_norm),
    "every token's heads are the first one's": ("rmsnorm", "row / p.heads * p.stride + ", "", qk_norm),
    "norm without mean": ("rmsnorm", "/ f32(p.width)", "", norm),
    "norm without eps": (
        "rmsnorm",
        "mean + p.eps",
        "mean",
        lambda driver: checks.check_rmsnorm(driver, 3, 20, magnitude=1e-3),
    ),
    "gate without sigmoid": ("swiglu", "g * sigmoid * gate_up", "g * gate_up", swiglu),
    "gate lets through what the first row's would": ("swiglu", "i + i / p.F * p.F", "i", swiglu),
    "residual forgotten": ("matmul", "sum += residual[at];", "", product()),
    "residual of the first token for all": (
        "matmul_quads",
        "residual[at]",
        "residual[at % p.out_stride]",
        product(Q4_1, variant="quads"),
    ),
    "residual of a larger matrix read as if it were alone": (
        "matmul_few_groups",
        "residual[at]",
        "residual[at - p.out_col0]",
        product(placed=True, variant="groups"),
    ),
}
