"""The manifest says what the WGSL says: files, entry points, workgroups, overrides, parameters, bindings, loops."""

import math
import re
from itertools import pairwise

import pytest

from tests.kernels.drivers import ROOT
from webgpu import lens_ops, ops
from webgpu.kernels import load_manifest

FOLDER = ROOT / "webgpu"
MANIFEST = load_manifest()
TEXTS = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.wgsl")}
# What a kernel may use only if it says so in `needs`, and what the host has to put before its text for that.
NEEDS = {"subgroups": r"\b(subgroup\w*|quad[A-Z]\w*)\b", "f16": r"\bf16\b"}
# llvmpipe counts turns in 16 bits and stops; half of that leaves room for a compiler that splits a loop in two.
MOST_TURNS = 32_768
LARGEST = {"S": 8192, "V": 151_936, "d_in": 16_384, "D": 8192}


def code(name: str) -> str:
    """A kernel's text without comments."""
    return re.sub(r"//.*", "", TEXTS[MANIFEST[name]["file"]])


def turns(entry: dict, **at: int) -> int:
    """Evaluate a manifest's `loops`."""
    return int(eval(entry["loops"], {"__builtins__": {}, "ceil": math.ceil}, {**entry["loops_at"], **at}))


def test_manifest_lists_every_file_and_no_other():
    assert {entry["file"] for entry in MANIFEST.values()} == set(TEXTS)


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_bindings_match_text(name):
    entry = MANIFEST[name]
    found = re.findall(
        r"@group\(0\) @binding\((\d+)\) var(?:<storage, (read_write|read)>)? (\w+): (\S.*?);", code(name)
    )
    access = {
        "texture_2d<f32>": "texels",
        "texture_storage_2d<rgba32float, write>": "write_texels",
        "sampler": "nearest",
    }
    assert [[binding, buffer or access[kind]] for _, buffer, binding, kind in found] == entry["bindings"]
    assert [int(number) for number, *_ in found] == list(range(1, len(found) + 1))
    assert "@group(0) @binding(0) var<uniform> p: Params;" in code(name)
    assert len(found) <= 8, "WebGPU's default limit is 8 storage buffers"


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_params_match_text(name):
    body = re.search(r"struct Params \{(.*?)\}", code(name), re.DOTALL)[1]
    assert [list(pair) for pair in re.findall(r"(\w+): (u32|f32)", body)] == MANIFEST[name]["params"]


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_overrides_match_text(name):
    found = re.findall(r"override (\w+): (u32|bool|f32) = (\w+);", code(name))
    values = {
        name: {"true": True, "false": False}.get(value) if kind == "bool" else int(value) for name, kind, value in found
    }
    used = {key: value for key, value in values.items() if key in MANIFEST[name]["overrides"]}
    assert used == MANIFEST[name]["overrides"]
    # A file with two entry points may leave one an override that only the other uses: not every compiler accepts it.
    assert set(values) - set(used) <= ({"MEAN"} if name.startswith("attention_cells") else set())


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_entry_and_workgroup_match_text(name):
    entry = MANIFEST[name]
    size = re.search(rf"@compute @workgroup_size\(([\d, ]+)\)\s+fn {entry['entry']}\(", code(name))[1]
    given = [int(n) for n in size.split(",")]
    assert given + [1] * (3 - len(given)) == entry["workgroup"]
    assert math.prod(entry["workgroup"]) <= 256


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_loops_stay_below_the_limit(name):
    entry = MANIFEST[name]
    assert turns(entry) == entry["loops_max"] < MOST_TURNS


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_loops_count_no_loop_when_none_is_written(name):
    assert (MANIFEST[name]["loops"] == "0") == (not re.search(r"\b(for|while|loop)\b", code(name)))


@pytest.mark.parametrize("H", [4, 16, 64, 80, 128, 256])
@pytest.mark.parametrize("S", [1, 1000, 4096, 8192])
def test_ops_attention_turns_equal_the_manifest(S, H):
    most = max(turns(MANIFEST[f"attention_{name}"], S=S, H=H) for name in ("fa2", "registers", "texels"))
    assert ops.attention_turns(S, H) == most


@pytest.mark.parametrize("variant", ["rows", "quads"])
@pytest.mark.parametrize("H", [16, 64, 128, 192])
@pytest.mark.parametrize(("rows", "out"), [(8192, 2), (8192, 24), (8192, 512), (8192, 8192), (100, 300)])
def test_ops_window_dispatches_stay_below_the_limit(rows, out, H, variant):
    window = {
        "head0": 0,
        "heads": 1,
        "row0": 0,
        "rows": rows,
        "col0": 0,
        "cols": rows,
        "out_rows": out,
        "out_cols": out,
    }
    sizes = {"T": rows, "S": rows, "N": 1, "K": 1, "H": H, "offset": 0, "window": 0, "sinks": 0, "scale": 1.0}
    how = {"variant": variant, "most_flops": 500_000_000}
    dispatches = ops.attention_probs("q", "k", "lse", "out", **sizes, **window, reduce="max", **how)
    slices = [(d.params["slice0"], d.params["slice1"]) for d in dispatches]
    assert slices[0][0] == 0 and slices[-1][1] == (rows if rows == out else math.ceil(rows / out))
    assert all(end == start for (_, end), (start, _) in pairwise(slices))
    for dispatch in dispatches:
        at = {**dispatch.params, "pixel_cols": math.ceil(rows / out), "H": H}
        assert turns(MANIFEST[dispatch.kernel], **at) < MOST_TURNS


@pytest.mark.parametrize("D", [64, 576, 2048, 4096, 8192])
@pytest.mark.parametrize("V", [10, 49_152, 151_936])
def test_ops_lens_tiles_stay_below_the_limit(D, V):
    tile = lens_ops.lens_tile(D, V)
    assert turns(MANIFEST["lens_tile"], D=D, tile=tile, TOP_K=10) <= MOST_TURNS
    parts = lens_ops.lens_parts([("w", 0, V // 2), ("x", V // 2, V - V // 2)], D=D, V=V)
    assert turns(MANIFEST["lens_merge"], parts=parts, TOP_K=10) < MOST_TURNS


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_needs_match_text(name):
    entry = MANIFEST[name]
    used = [need for need, word in NEEDS.items() if re.search(word, code(name))]
    assert used == entry.get("needs", []) == entry.get("enable", [])


@pytest.mark.parametrize("file", TEXTS)
def test_kernel_text_keeps_the_house_rules(file):
    text = TEXTS[file]
    assert len(text.splitlines()) <= 160
    assert max(map(len, text.splitlines())) <= 130
    for word in ("Grid:", "In:", "Out:", "Loops per invocation:"):
        assert word in text.split("struct Params")[0], f"the header of {file} has no {word}"
    body = re.sub(r"//.*", "", text)
    assert not re.search(r"\b(enable|inf)\b", body)
    # Neither compiler zeroes a variable again on the next turn of a loop.
    assert not re.search(
        r"\bvar \w+(: [^=;]+)?;",
        re.sub(r"@group.*", "", body)
        .replace("var top: array<f32, MAX_K>;", "")
        .replace("var top_id: array<u32, MAX_K>;", ""),
    ), "a var without an initialiser"
