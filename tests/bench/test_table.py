"""The table: its verdicts, its format, and that README shows what the command writes.

Plan: a made-up run whose ratios are known; each kind of peer's cell; README's section against the format; the command
itself, quick and without peers.
"""

import json
import re
import subprocess
import sys

import pytest

from bench import memory, table
from tests.conftest import ROOT

VERDICTS = {"met", "missed", "not measured"}


def report(op: str, T: int, ms: float, **more: object) -> dict:
    """One of our measurements."""
    given = {"op": op, "T": T, **more}
    return {
        "given": given, "op": op, "ms": ms, "wait_ms": ms * 2, "variant": "fa2", "gflops": 4.2, "of_fma": 0.21,
        "of_read": 0.1, "max_error": 3e-7, "adapter": "SwiftShader (a CPU stands in for a GPU)",
        "ceilings": {"fma_gflops": 20.0, "read_gbs": 2.0},
    }  # fmt: skip


def made_up() -> dict:
    """A run: ours 10 ms everywhere, peers chosen so that some targets are met and some missed."""
    peers = {
        "ort-nosubgroups": {"ms": 100.0, "wait_ms": 110.0},
        "ort-wasm": {"ms": 29.0, "wait_ms": 29.0},
        "tfjs": {"error": "x"},
    }
    peers["ort-webgpu"] = {"ms": None, "max_error": 0.45}
    lines = [("attention", 128), ("attention", 512), ("decode", 2048), ("attention", 2048)]
    return {
        "date": "2026-01-01", "seconds": 9, "sittings": 1, "problems": [],
        "load_at_end": 1.0, "machine": "a processor", "versions": {"Chromium": "1"}, "gpu": False,
        "side_by_side": [{"given": {"op": op, "T": T}, "ours": report(op, T, 10.0), **peers} for op, T in lines],
        "alone": [report("heatmap", 2048, 1.1), report("heatmap", 512, 1.0), report("heatmap", 8192, 1.2, window=512)],
        "headless": {"native": [report("attention", 2048, 10.0)], "swiftshader": [{"error": "no driver"}]},
        "model": {"ours": {"prefill_ms": 100.0, "decode_ms": 10.0},
                  "ort-nosubgroups smollm2-q4": {"prefill_ms": 500.0, "decode_ms": 100.0}},
        "page": {"short": {"first_ms": 900.0}, "long": {"wall_ms": 4000.0}}, "memory": memory.table(),
    }  # fmt: skip


def tables(text: str) -> list[list[list[str]]]:
    """The Markdown tables of a text, as cells."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()] for block in blocks]


def test_targets_follow_from_the_figures():
    found = {target.words: (target.measured, target.verdict) for target in table.targets(made_up())}
    assert found["prefill T 512 against ORT WebGPU, no subgroups"] == (10, "met")  # 100 / 10, wanted 10
    assert found["prefill T 1024 against ORT WebGPU, no subgroups"] == (None, "not measured")
    assert found["prefill T 512 against ORT WASM, 2 threads"] == (2.9, "missed")
    assert found["prefill T 2048 against tfjs WebGPU"] == (None, "not measured")
    assert found["decode 1 x 2048, back to back, against ORT WebGPU, no subgroups"] == (10, "missed")
    assert found["decode 1 x 2048, waited for, against ORT WebGPU, no subgroups"] == (5.5, "missed")  # 110 / 20
    assert found["decode 1 x 2048, back to back, against ORT WASM, 2 threads"] == (2.9, "met")
    assert found["decode 1 x 2048, waited for, against ORT WASM, 2 threads"] == (1.45, "met")  # 29 / 20
    assert found["prefill T 2048, share of the FMA ceiling, headless SwiftShader"] == (21, "met")
    assert not [words for words in found if "wide" in words], "one row, the product's own choice"
    measured, verdict = found["heatmap 2048 x 2048 as a share of prefill T 2048"]
    assert measured == pytest.approx(0.11) and verdict == "missed"
    assert found["window 512 x 512 at T 8192 against T 512"] == (1.2, "met")
    assert found["SmolLM2 prefill of 64 tokens against ORT WebGPU q4"] == (5, "met")
    assert found["SmolLM2 decode against ORT WebGPU q4"] == (10, "missed")
    assert found["14-token prompt to first heatmaps"] == (0.9, "met")
    assert found["wall of 270 heads at T 256, drawn"] == (4, "missed")


def test_render_a_wrong_peer_has_no_speed():
    [first, *_] = tables(table.render(made_up()))
    assert first[0] == list(table.HEADS)
    assert first[2][-4:] == ["100", "wrong, error 0.5", "29", "failed"]


def test_render_shows_decode_both_ways():
    [first, *_] = tables(table.render(made_up()))
    lines = {line[0]: line for line in first}
    row, alone = lines["decode T 2048"], lines["decode T 2048, waited for"]
    assert (row[1], row[-4], row[-2]) == ("10", "100", "29") and (alone[1], alone[-4], alone[-2]) == ("20", "110", "29")
    assert (row[3], alone[3]) == ("4.2", "2.1") and (row[4], alone[4]) == ("21%", "10%")  # rates of the time shown


def by_turns() -> dict:
    """The made-up run with turns: times and ratios do not agree, as where one of a pair was slow."""
    found = made_up()
    line = found["side_by_side"][1]
    line["ratios"] = {"ort-nosubgroups": {"ms": [9.0, 9.5, 30.0]}}
    readings = [{"ms": ms, "wait_ms": ms} for ms in (8.0, 10.0, 14.0)]
    line["ours"]["readings"] = line["ort-wasm"]["readings"] = readings
    found["alone"][0]["against"] = {"ratios": {"ms": [0.05, 0.09, 0.5]}}
    found["alone"][2]["against"] = {"ratios": {"ms": [1.1, 1.4, 1.5]}}
    long = found["headless"]["native"][0]
    long["readings"] = [{"ms": ms, "wait_ms": ms, "fma_gflops": 42 / ms / share} for ms, share in
                        ((10.0, 0.19), (20.0, 0.18), (10.0, 0.5))]  # fmt: skip
    found["model"]["ort-nosubgroups smollm2-q4"]["ratios"] = {"prefill_ms": [3.0], "decode_ms": [16.0]}
    return found


def test_verdict_is_the_median_of_the_turns_own_ratios():
    found = {target.words: (target.measured, target.verdict) for target in table.targets(by_turns())}
    assert found["prefill T 512 against ORT WebGPU, no subgroups"] == (9.5, "missed")
    assert found["heatmap 2048 x 2048 as a share of prefill T 2048"] == (0.09, "met")
    assert found["window 512 x 512 at T 8192 against T 512"] == (1.4, "missed")
    measured, verdict = found["prefill T 2048, share of the FMA ceiling, headless SwiftShader"]
    assert measured == pytest.approx(19) and verdict == "missed"
    assert found["SmolLM2 prefill of 64 tokens against ORT WebGPU q4"] == (3, "missed")
    assert found["SmolLM2 decode against ORT WebGPU q4"] == (16, "met")


def test_render_shows_from_where_to_where_readings_go():
    text = table.render(by_turns())
    [first, _, verdicts, _] = tables(text)
    assert first[3][1] == "10 (8 to 14)" and first[3][-2] == "29 (8 to 14)" and first[2][1] == "10"
    assert ["prefill T 512 against ORT WebGPU, no subgroups", ">= 10 x", "9.5 x (9 to 30)", "missed"] in verdicts
    assert (table.figure(12571.2, 4), table.figure(999.4), table.figure(0.0518)) == ("12571", "999", "0.0518")
    assert table.TURNS in text and table.TURNS not in table.render(made_up()), "no run is said to be what it was not"


def test_summary_counts_what_is_met_and_names_what_is_not():
    found = by_turns()
    words = table.summary(found)
    verdicts = [target.verdict for target in table.targets(found)]
    assert words.startswith(f"{verdicts.count('met')} of {len(verdicts)} targets are met; not: ")
    assert "prefill T 512 against ORT WebGPU, no subgroups (9.5 x, wanted >= 10 x)" in words
    assert "prefill T 1024 against ORT WebGPU, no subgroups (not measured, wanted >= 10 x)" in words
    assert "to first heatmaps" not in words
    assert words in table.render(found)


def test_readme_shows_what_the_command_writes():
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition(table.START)[2].partition(table.END)[0]
    assert section, "README has no table between its two marks"
    assert re.match(r"\nMeasured on \d{4}-\d\d-\d\d in \d+ s \(\d sitting\(s\)\): \S.*, \d+ cores, ", section)
    kept = json.loads((ROOT / "bench" / "latest.json").read_text("utf-8"))
    assert section.strip("\n") == table.render(kept), "`python -m bench --readme` writes README and bench/latest.json"
    made, shown = tables(table.render(made_up())), tables(section)
    assert [block[0] for block in shown] == [block[0] for block in made]
    for block in shown:
        assert all(len(line) == len(block[0]) for line in block)
    wanted = [[line[0], line[1]] for line in made[2][2:]]
    verdicts = {line[-1] for line in shown[2][2:]}
    assert [line[1] for line in shown[2][2:]] == [words for _, words in wanted] and verdicts <= VERDICTS
    assert shown[3] == made[3], "the memory table is computed, not measured: `python -m bench --readme` writes it anew"


def test_into_readme_replaces_only_between_the_marks():
    text = f"before\n{table.START}\nold\n{table.END}\nafter\n"
    assert table.into_readme(text, "new") == f"before\n{table.START}\nnew\n{table.END}\nafter\n"
    with pytest.raises(ValueError, match="README has no"):
        table.into_readme("nothing", "new")


def test_memory_of_attention_state_is_linear():
    rows = memory.table()
    assert [row["T"] for row in rows] == [1024, 2048, 4096, 8192]
    for row in rows:  # q 9, k and v 3 heads of 64, lse 9, four bytes, 30 layers
        assert row["state_bytes"] == row["T"] * 30 * 4 * ((9 + 3 + 3) * 64 + 9)
        assert row["passing_bytes"] == rows[0]["passing_bytes"]


@pytest.mark.slow
@pytest.mark.chromium
@pytest.mark.gpu
def test_quick_command_prints_the_table():
    command = [sys.executable, "-m", "bench", "--quick", "--without-peers", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=570)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    reports = [line["ours"] for line in found["side_by_side"]] + found["alone"]
    reports += [report for place in found["headless"].values() for report in place]
    assert len(reports) == 6 and all("error" not in report for report in reports), reports
    assert tables(table.render(found))[0][0] == list(table.HEADS)
