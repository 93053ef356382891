"""Python and JavaScript ask the same question: numbers, arguments, sentences, dispatches."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench import arguments, cases, tensors
from bench.errors import BadArguments
from webgpu.ops import UnsupportedShape

ASKED = [
    {}, {"op": "attention", "T": 130}, {"op": "prefill", "T": 2, "N": 14, "K": 2, "H": 80}, {"op": "decode", "T": 70},
    {"op": "heatmap", "T": 60}, {"op": "heatmap", "T": 300, "window": 200, "pixels": 70},
    {"op": "heatmap", "T": 64, "variant": "quads"}, {"op": "matmul", "T": 1, "d_in": 64, "d_out": 10},
    {"op": "matmul", "T": 5, "d_in": 64, "d_out": 9, "format": "q4_1"}, {"op": "matmul", "T": 200, "format": "bf16"},
    {"op": "matmul", "T": 5, "d_in": 64, "d_out": 9, "format": "q4_1", "variant": "quads"},
    {"op": "matmul", "T": 1, "d_in": 64, "d_out": 9, "format": "q8_0", "variant": "quads"},
    {"op": "matmul", "T": 5, "d_in": 64, "d_out": 9, "format": "f16", "variant": "quads"},
    {"op": "lens", "T": 2, "D": 64, "V": 700, "format": "q8_0", "variant": "quads"},
    {"op": "lens", "T": 2, "D": 64, "V": 700, "format": "q8_0", "variant": "groups"},
    {"op": "lens", "T": 2, "D": 64, "V": 700, "format": "q8_0"}, {"op": "lens", "T": 3, "D": 64, "V": 700},
]  # fmt: skip
REFUSED = [
    {"op": "sums"}, {"op": 3}, {"op": ["matmul"]}, {"op": "constructor"}, {"op": "attention", "T": 1}, {"T": 2.5},
    {"T": "512"}, {"T": True}, {"T": 9000}, {"T": -1}, {"N": 9, "K": 2}, {"H": 6}, {"op": "matmul", "H": 64},
    {"op": "matmul", "d_in": 20}, {"op": "matmul", "format": "q4_0"}, {"op": "matmul", "d_in": 40, "format": "q4_1"},
    {"op": "heatmap", "T": 8, "window": 9}, {"op": "heatmap", "T": 8, "pixels": 9}, {"variant": 5},
    {"op": "matmul", "d_in": 16384, "d_out": 65536}, {"toString": 1}, {"T": {"a": 'é "'}},
    {"op": ""}, {"op": 0}, {"op": False},
]  # fmt: skip
LIMIT = 128 << 20
# One step within what a device binds, and one beyond: the buffer that is too large, and its bytes.
EDGES = [
    ({"op": "matmul", "T": 2048, "d_in": 16384, "d_out": 1}, {"T": 2049}, "x", 4 * 2049 * 16384),
    ({"op": "matmul", "T": 2048, "d_in": 16384, "d_out": 8}, {"T": 8192}, "x", 4 * 8192 * 16384),
    ({"op": "matmul", "T": 512, "d_in": 8, "d_out": 65536}, {"T": 513}, "out", 4 * 513 * 65536),
    ({"op": "matmul", "T": 1, "d_in": 512, "d_out": 65536, "format": "f32"}, {"d_in": 520}, "weight", 4 * 520 * 65536),
    ({"op": "attention", "T": 1024, "N": 128, "K": 1, "H": 256}, {"T": 1025}, "q", 4 * 1025 * 128 * 256),
    ({"op": "attention", "T": 8192, "N": 128, "K": 128, "H": 32}, {"H": 36}, "k", 4 * 8192 * 128 * 36),
    ({"op": "decode", "T": 1024, "N": 128, "K": 128, "H": 256}, {"T": 1025}, "k", 4 * 1025 * 128 * 256),
    ({"op": "decode", "T": 8192, "N": 128, "K": 16, "H": 256}, {"K": 32}, "v", 4 * 8192 * 32 * 256),
    ({"op": "heatmap", "T": 8192, "N": 16, "K": 16, "H": 256, "window": 8}, {"N": 32}, "q", 4 * 8192 * 32 * 256),
    ({"op": "heatmap", "T": 8192, "N": 128, "K": 1, "H": 4, "pixels": 5792}, {"pixels": 5793}, "out", 4 * 5793**2),
    ({"op": "lens", "T": 512, "D": 8, "V": 200000}, {"D": 8192}, "weight", 4 * 8192 * 200000),
    ({"op": "lens", "T": 512, "D": 160, "V": 200000, "format": "f32"}, {"D": 168}, "weight", 4 * 168 * 200000),
    ({"op": "lens", "T": 512, "D": 8192, "V": 4096, "format": "f32"}, {"V": 4097}, "weight", 4 * 8192 * 4097),
]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 77, 2**31])
def test_hashes_and_numbers_are_the_same_bits(mirror, seed):
    assert mirror("hashes", seed=seed, count=300)["answer"] == tensors.hashes(seed, 300).tolist()
    found = tensors.numbers(seed, 300)
    assert mirror("numbers", seed=seed, count=300)["answer"] == found.tolist()
    assert found.min() >= -2 and found.max() < 2 and 1.0 < found.std() < 1.3  # uniform on [-2,2): 1.155


@pytest.mark.parametrize("form", arguments.FORMATS)
def test_matrix_is_the_same_in_every_format(mirror, form):
    values, stored = tensors.matrix(5, 3, 64, form)
    answer = mirror("matrix", format=form)["answer"]
    assert answer["values"] == values.ravel().tolist()
    bits = {np.dtype("f2"): np.uint16}
    kept = {name: array.view(bits.get(array.dtype, array.dtype)).ravel().tolist() for name, array in stored.items()}
    assert answer["buffers"] == kept


@pytest.mark.parametrize("count", [1, 128, 129, 1000])
def test_sampled_rows_visit_every_place_of_a_tile(mirror, count):
    rows = tensors.sampled(count)
    assert mirror("sampled", count=count)["answer"] == rows.tolist()
    assert rows[0] == 0 and rows[-1] == count - 1 and max(np.diff(rows, prepend=0)) < 32
    if count >= 1000:
        assert set(rows % 16) == set(range(16))


@pytest.mark.parametrize("given", ASKED, ids=str)
def test_case_is_the_same(mirror, given):
    asked = arguments.read(given)
    assert mirror("read", given=given)["answer"] == asked
    asked["variant"] = cases.used_variant(asked)
    case, answer = cases.CASES[asked["op"]](asked), mirror("case", given=given)["answer"]
    assert answer["dispatches"] == [vars(dispatch) | {"grid": list(dispatch.grid)} for dispatch in case.dispatches]
    assert {key: answer[key] for key in ("words", "flops", "checked", "read_bytes")} == {
        "words": case.words, "flops": case.flops, "checked": case.checked, "read_bytes": case.read_bytes,
    }  # fmt: skip
    assert {name: size for name, size in answer["scratch"].items() if size} == {
        name: size for name, size in case.scratch.items() if size
    }
    assert answer["outputs"] == {name: int(np.prod(shape)) for name, (_, shape) in case.outputs.items()}
    for name, (length, *few) in answer["inputs"].items():
        flat = case.inputs[name].ravel()
        flat = flat.view(np.uint16) if flat.dtype == np.float16 else flat
        assert length == len(flat) and np.allclose(few, [flat[i] for i in (0, 1, 7 % len(flat), -1)], rtol=1e-6, atol=0)


# SwiftShader in Chromium, a CPU driver whose subgroups have 8 lanes or more, one without subgroups, a GPU.
DEVICES = [(["subgroups"], True), (["subgroups", "f16"], True), ([], True), (["subgroups"], False)]


@pytest.mark.parametrize("given", ASKED, ids=str)
def test_tried_is_the_same(mirror, given):
    asked = arguments.read(given)
    for features, software in DEVICES:
        ours = cases.tried(asked, SimpleNamespace(features=features, software=software))
        assert mirror("tried", given=given, features=features, software=software)["answer"] == ours


def test_tried_is_what_the_product_chooses_among():
    """CPU drivers keep what a model begins with; GPUs try attention and products, not windows and the lens."""
    found = {
        op: [
            cases.tried(arguments.read({"op": op}), SimpleNamespace(features=features, software=software))
            for features, software in DEVICES
        ]
        for op in ("attention", "matmul", "heatmap", "lens")
    }
    assert found == {
        "attention": [["texels"], ["texels"], ["registers"], ["fa2", "texels", "tile"]],
        "matmul": [["quads"], ["quads"], ["registers"], ["registers", "quads", "groups"]],
        "heatmap": [["quads"], ["quads"], ["rows"], ["rows"]],
        "lens": [["rows"], ["rows"], ["rows"], ["groups"]],
    }


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_refusal_is_the_same_sentence(mirror, given):
    with pytest.raises(BadArguments) as refused:
        arguments.read(given)
    sentence = str(refused.value)
    assert mirror("read", given=given)["error"] == sentence
    assert sentence.endswith(".") and "\n" not in sentence


@pytest.fixture
def unfilled(monkeypatch):
    """Cases of any size without their numbers: arrays that repeat one zero."""

    def zeros(seed: int, *shape: int, dtype: type = np.float32) -> np.ndarray:
        return np.broadcast_to(dtype(0), shape)

    def matrix(seed: int, rows: int, width: int, form: str) -> tuple:
        dtype = {"f32": np.float32, "f16": np.float16}[form]
        return zeros(seed, rows, width), {"weight": zeros(seed, rows, width, dtype=dtype)}

    monkeypatch.setattr(cases, "numbers", zeros)
    monkeypatch.setattr(cases, "matrix", matrix)
    monkeypatch.setattr(cases.reference, "pattern_rows", lambda q, k, rows: (None, np.zeros(len(rows))))


def bytes_of(case: cases.Case) -> dict[str, int]:
    """Every buffer that a case uploads."""
    made = {name: int(np.prod(shape)) * np.dtype(dtype).itemsize for name, (dtype, shape) in case.outputs.items()}
    return made | dict(case.scratch) | {name: array.nbytes for name, array in case.inputs.items()}


@pytest.mark.parametrize(("most", "beyond", "name", "size"), EDGES, ids=str)
def test_no_buffer_is_larger_than_a_device_binds(mirror, unfilled, most, beyond, name, size):
    """The most that is let through fits, with every variant; the next is refused in a sentence, which is true."""
    asked = arguments.read(most)
    assert mirror("read", given=most)["answer"] == asked
    for variant in (each.name for each in cases.variants.VARIANTS[cases.varied(asked)]):
        try:
            buffers = bytes_of(cases.CASES[asked["op"]]({**asked, "variant": variant}))
        except UnsupportedShape:
            continue  # a sentence of its own
        assert max(buffers.values()) <= LIMIT, variant
    sentence = f"these sizes need a buffer of {size} bytes; a device binds {LIMIT}, so take less."
    with pytest.raises(BadArguments, match=sentence):
        arguments.read({**most, **beyond})
    assert mirror("read", given={**most, **beyond})["error"] == sentence
    whole = {"format": "f32"} if name == "weight" else {}  # a matrix counts as the float32 that its check keeps
    first = cases.variants.VARIANTS[cases.varied(asked)][0].name
    assert bytes_of(cases.CASES[asked["op"]]({**asked, **beyond, **whole, "variant": first}))[name] == size


@pytest.mark.parametrize("given", [None, 3, "attention", []])
def test_page_refuses_what_is_no_object(mirror, given):
    assert mirror("read", given=given)["error"].startswith("bench takes an object such as")
