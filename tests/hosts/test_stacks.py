"""Weights that share a buffer: where each part lies, that both hosts agree on it, and that no number depends on it.

Plan: parts of qkv and gate_up with their biases and scales; formats that differ and ends where no binding may begin
stay apart; on the device the same weights stacked, apart, and stacked but multiplied in slices give the same numbers
to the bit, and so do a recorded pass and one that is not.
"""

import numpy as np
import pytest

from tests.blocks import quantise
from tests.hosts.configs import GOOD, config
from webgpu.config import parse_config
from webgpu.layout import FORMATS, place, tensor_shapes
from webgpu.pieces import STACKS, row_bytes
from webgpu.plan import TRACE, prefill

# Two heads of 32 for keys and 128 gates, so that parts of every format end on a multiple of 256 bytes, biases too.
RAW = {
    "head_dim": 32, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 96, "attention_bias": True,
    "mlp_bias": True, "num_hidden_layers": 2,
}  # fmt: skip
QKV = [f"model.layers.1.{name}" for name in STACKS["self_attn.qkv_proj"]]
GATE_UP = [f"model.layers.1.{name}" for name in STACKS["mlp.gate_up_proj"]]


def weights(parsed, kind: str) -> dict:
    """Random tensors by name: matrices of layers in a format or in blocks, the others in f32."""
    rng, given = np.random.default_rng(5), {}
    for name, shape in tensor_shapes(parsed).items():
        full = rng.normal(0, 0.25, shape).astype("f4")
        blocks = kind in ("Q4_1", "Q8_0") and len(shape) == 2
        given[name] = (
            quantise(full, kind) if blocks else full.astype("f2") if kind == "F16" and len(shape) == 2 else full
        )
    return given


def dtypes_of(given: dict) -> dict:
    return {name: getattr(values, "dtype", "F32") for name, values in given.items()} | {
        name: {"float32": "F32", "float16": "F16"}[values.dtype.name]
        for name, values in given.items()
        if isinstance(values, np.ndarray)
    }


@pytest.fixture
def loaded(device, kernels):
    """A function that places and uploads random weights; its models are freed after the test."""
    from webgpu.runtime import Model

    models = []

    def load(raw, kind, most_bytes=1 << 27):
        parsed = parse_config(raw)
        given = weights(parsed, kind)
        models.append(Model(kernels, parsed, place(parsed, dtypes_of(given), most_bytes)))
        for name, values in given.items():
            models[-1].upload(name, values)
        return models[-1]

    yield load
    for model in models:
        model.destroy()


def buffers_of(placed: dict, names: list[str], kind: str = "weight") -> list[tuple[str, int]]:
    return [(piece.buffer, piece.at) for name in names for piece in placed[f"{name}.{kind}"].pieces]


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "Q4_1", "Q8_0"])
def test_parts_lie_behind_one_another(dtype):
    parsed = parse_config(config(**RAW))
    placed = place(parsed, dict.fromkeys(tensor_shapes(parsed), dtype))
    for kind in ("weight", "bias"):
        at = "model.layers.1."
        assert buffers_of(placed, QKV, kind) == [(f"{at}self_attn.qkv_proj.{kind}", row) for row in (0, 128, 192)]
        assert buffers_of(placed, GATE_UP, kind) == [(f"{at}mlp.gate_up_proj.{kind}", row) for row in (0, 128)]
    pieces = {piece.buffer: piece for tensor in placed.values() for piece in tensor.pieces}
    apart = {
        piece.buffer: piece
        for tensor in place(parsed, dict.fromkeys(tensor_shapes(parsed), dtype), 1).values()
        for piece in tensor.pieces
    }
    assert sum(piece.scale_bytes for piece in pieces.values()) <= sum(piece.scale_bytes for piece in apart.values())
    assert sum(piece.bytes for piece in pieces.values()) <= sum(piece.bytes for piece in apart.values())


@pytest.mark.parametrize(
    ("raw", "names", "changed", "shared"),
    [
        (config(**RAW), QKV, {}, True),
        (config(**RAW), QKV, {QKV[2]: "Q8_0"}, False),  # another format
        (config(**RAW | {"num_key_value_heads": 1}), QKV, {}, False),  # k's bias ends after 128 bytes
        (GOOD["smollm2"], QKV, {}, True),
        (GOOD["smollm2"], GATE_UP, {GATE_UP[0]: "F16"}, False),
        (GOOD["smollm2"], GATE_UP, {QKV[0]: "F16"}, True),
    ],
)
def test_what_is_not_alike_stays_apart_on_both_hosts(raw, names, changed, shared, mirror):
    parsed = parse_config(raw)
    dtypes = dict.fromkeys(tensor_shapes(parsed), "Q4_1") | {f"{name}.weight": dtype for name, dtype in changed.items()}
    placed = place(parsed, dtypes)
    assert (len({buffer for buffer, _ in buffers_of(placed, names)}) == 1) == shared
    theirs = mirror.ask(
        "layout",
        raw=raw,
        dtype="Q4_1",
        most_bytes=1 << 27,
        changed={f"{name}.weight": dtype for name, dtype in changed.items()},
    )
    for name in names:
        pieces = theirs[f"{name}.weight"]["pieces"]
        assert [(piece["buffer"], piece["at"]) for piece in pieces] == buffers_of(placed, [name])


@pytest.mark.gpu
@pytest.mark.parametrize(("family", "kind"), [("llama", "F32"), ("llama", "F16"), ("llama", "Q4_1"), ("qwen3", "Q8_0")])
def test_no_number_depends_on_where_weights_lie(family, kind, loaded):
    more = {"mlp_bias": False} if family == "qwen3" else {}
    raw, ids = config(family, **RAW | more), [int(7 * i % 96) for i in range(19)]
    stacked, apart = loaded(raw, kind), loaded(raw, kind, 128 * row_bytes(FORMATS[kind], 64)[0])
    assert len(apart.weights) > len(stacked.weights), "a buffer holds the largest matrix and no two of them"
    one, other, plain = stacked.run(ids, record=True), apart.run(ids, record=True), stacked.run(ids)
    for layer in range(2):
        for name in ("q_proj", "k_proj", "v", "q", "k", "gate", "up", "resid_mid", "mlp_out", "resid_post"):
            np.testing.assert_array_equal(one.read(name, layer), other.read(name, layer), f"{name} of layer {layer}")
        for name in ("q", "k", "v", "resid_post"):
            np.testing.assert_array_equal(plain.read(name, layer), one.read(name, layer), f"{name} of layer {layer}")
    assert np.abs(one.read("q_proj", 1)).max() > 1e-3, "numbers that are all zero would agree"
    plans = prefill(
        stacked.config, stacked.placed, T=19, capacity=19, keep=TRACE, choice=stacked.choice, submit_flops=1
    )
    parts = {
        each
        for plan in plans
        for step in plan.steps
        for each in (d.bindings.get("weight", "") for d in step.dispatches)
    }
    assert sum("qkv_proj.weight@" in part for part in parts) == 2 * 2, "a small budget multiplies 128 rows at a time"
    buffers = stacked.allocate(plans, 19)
    stacked.run_forwards(plans, ids, buffers, 19)
    left = stacked.kernels.read(buffers["resid.2"], "float32", (19, 64))
    np.testing.assert_array_equal(left, one.read("resid_post", 1))
    assert list(stacked.generate(ids, 3)) == list(apart.generate(ids, 3))
    buffers.destroy()
    for trace in (one, other, plain):
        trace.destroy()
