"""The table and the targets, as Markdown, from what bench/full.py collected."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

START, END = "<!-- bench: written by `python -m bench --readme` -->", "<!-- /bench -->"
PEERS = {
    "ort-nosubgroups": "ORT WebGPU, no subgroups", "ort-webgpu": "ORT WebGPU, default",
    "ort-wasm": "ORT WASM, 2 threads", "tfjs": "tfjs WebGPU",
}  # fmt: skip
HEADS = ("operation", "ours, ms", "variant", "GFLOP/s", "of FMA", "of read", "error", *PEERS.values())
TARGET_HEADS = ("target", "wanted", "measured", "verdict")
BERTVIZ_S = (
    31.0  # model view of 144 heads at T = 128 in the same kind of browser, measured once (KERNELS study), not rerun
)


@dataclass(frozen=True)
class Target:
    """A ratio or a time that was promised. at_least: larger is better."""

    words: str
    wanted: float
    measured: float | None
    unit: str = "x"
    at_least: bool = True

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        return "met" if (self.measured >= self.wanted) == self.at_least or self.measured == self.wanted else "missed"


def row(cells: Any) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def grid(heads: Any, rows: Any) -> list[str]:
    """A Markdown table."""
    return [row(heads), "|" + "---|" * len(heads), *map(row, rows)]


def key_of(op: str) -> str:
    """Which time an operation is judged by: a decode step is one submit and one wait, the others back to back."""
    return "wait_ms" if op == "decode" else "ms"


def ms_words(report: Mapping[str, Any] | None, op: str) -> str:
    """A peer's cell: its time, or why it has none."""
    if report is None:
        return "not run"
    if "error" in report:
        return "failed"
    if report.get("ms") is None:
        return f"wrong, error {report['max_error']:.1g}"
    return f"{report[key_of(op)]:.4g}"


def ours_cells(report: Mapping[str, Any]) -> list[str]:
    """Our cells of one operation."""
    given = report["given"]
    name = " ".join([given["op"], *(f"{key} {value}" for key, value in given.items() if key != "op")])
    key = key_of(given["op"])
    if "error" in report:
        return [name, "wrong or failed", "", "", "", "", ""]
    shown = report["ms"] / report[key]  # rates are those of the time that is shown
    return [
        name, f"{report[key]:.4g}", report["variant"] or "", f"{shown * report['gflops']:.1f}",
        f"{shown * report['of_fma']:.0%}", f"{shown * report['of_read']:.0%}", f"{report['max_error']:.0e}",
    ]  # fmt: skip


def operations(found: Mapping[str, Any]) -> Iterator[list[str]]:
    """The lines of the first table."""
    for line in found["side_by_side"]:
        yield [*ours_cells(line["ours"]), *(ms_words(line.get(kind), line["given"]["op"]) for kind in PEERS)]
    for report in found["alone"]:
        yield [*ours_cells(report), *([""] * len(PEERS))]
    for place, reports in found["headless"].items():
        for report in reports:
            if "given" in report:
                cells = ours_cells(report)
                yield [f"{cells[0]}, headless {adapter(report, place)}", *cells[1:], *([""] * len(PEERS))]


def adapter(report: Mapping[str, Any], place: str) -> str:
    return report.get("adapter", place).partition(" (")[0]


def ms(report: Mapping[str, Any] | None, key: str = "ms") -> float | None:
    """A time, if there is one."""
    return None if report is None or "error" in report else report.get(key)


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def targets(found: Mapping[str, Any]) -> list[Target]:
    """What was promised, beside what this run gave."""
    lines = {(line["given"]["op"], line["given"]["T"]): line for line in found["side_by_side"]}
    alone = {(r["given"]["op"], r["given"]["T"], r["given"].get("window")): r for r in found["alone"]}

    def times_faster(op: str, T: int, kind: str) -> float | None:
        line, key = lines.get((op, T), {}), key_of(op)
        return ratio(ms(line.get(kind), key), ms(line.get("ours"), key))

    rows = [
        Target(f"prefill T {T} against {PEERS[kind]}", wanted, times_faster("attention", T, kind))
        for kind, wanted in (("ort-nosubgroups", 10), ("tfjs", 40), ("ort-wasm", 3))
        for T in (512, 1024, 2048)
    ]
    name = PEERS["ort-nosubgroups"]
    rows.append(Target(f"prefill T 128 against {name}", 6, times_faster("attention", 128, "ort-nosubgroups")))
    for kind, wanted in (("ort-nosubgroups", 80), ("ort-wasm", 1)):
        rows.append(Target(f"decode 1 x 2048 against {PEERS[kind]}", wanted, times_faster("decode", 2048, kind)))
    for place, reports in found["headless"].items():
        for named in ({}, {"variant": "wide"}):
            asked = {"op": "attention", "T": 2048, **named}
            long = next((r for r in reports if r.get("given") == asked and "error" not in r), None)
            if long or not named:
                where = ", ".join([f"headless {adapter(long or {}, place)}", *named.values()])
                share = long["of_fma"] * 100 if long else None
                rows.append(Target(f"prefill T 2048, share of the FMA ceiling, {where}", 20, share, "%"))
    heat, prefill = ms(alone.get(("heatmap", 2048, None))), ms(lines.get(("attention", 2048), {}).get("ours"))
    rows.append(Target("heatmap 2048 x 2048 as a share of prefill T 2048", 0.1, ratio(heat, prefill), "x", False))
    far, near = ms(alone.get(("heatmap", 8192, 512))), ms(alone.get(("heatmap", 512, None)))
    rows.append(Target("window 512 x 512 at T 8192 against T 512", 1.3, ratio(far, near), "x", False))
    return rows + model_targets(found["model"], found["page"])


def model_targets(models: Mapping[str, Any], page: Mapping[str, Any]) -> list[Target]:
    """SmolLM2 and the page."""
    ours, peer = models.get("ours"), models.get("ort-nosubgroups smollm2-q4")
    short, long = page.get("short"), page.get("long")
    name = "ORT WebGPU q4"
    return [
        Target(
            f"SmolLM2 prefill of 64 tokens against {name}", 4, ratio(ms(peer, "prefill_ms"), ms(ours, "prefill_ms"))
        ),
        Target(f"SmolLM2 decode against {name}", 15, ratio(ms(peer, "decode_ms"), ms(ours, "decode_ms"))),
        Target("14-token prompt to first heatmaps", 1.5, short["first_ms"] / 1000 if short else None, "s", False),
        Target(
            "wall of 270 heads at T 256, drawn", BERTVIZ_S / 10, long["wall_ms"] / 1000 if long else None, "s", False
        ),
    ]


def target_cells(target: Target) -> list[str]:
    sign = ">=" if target.at_least else "<="
    measured = "" if target.measured is None else f"{target.measured:.3g} {target.unit}"
    return [target.words, f"{sign} {target.wanted:g} {target.unit}", measured, target.verdict]


def model_lines(models: Mapping[str, Any]) -> list[str]:
    """Tokens per second of the whole model."""
    rows = []
    for name, report in models.items():
        if "error" in report:
            rows.append([name, report["error"][:80], ""])
        else:
            speeds = (1000 * 64 / report["prefill_ms"], 1000 / report["decode_ms"])
            rows.append([name, *(f"{speed:.3g}" for speed in speeds)])
    return grid(("SmolLM2-135M, 64-token prompt", "prefill tokens/s", "decode tokens/s"), rows or [["not run", "", ""]])


def memory_lines(rows: list[Mapping[str, int]]) -> list[str]:
    """Bytes of attention state."""
    cells = [
        [line["T"], f"{line['state_bytes']:,}", f"{line['passing_bytes']:,}", f"{line['square_bytes']:,}"]
        for line in rows
    ]
    return grid(("T", "attention state, bytes", "passing buffers, bytes", "all patterns would take"), cells)


def render(found: Mapping[str, Any]) -> str:
    """The whole report as Markdown."""
    first = next((line["ours"] for line in found["side_by_side"] if "error" not in line["ours"]), {})
    limits = first.get("ceilings", {})
    used = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    ceilings = f"{limits.get('fma_gflops', 0):.0f} GFLOP/s of FMA, {limits.get('read_gbs', 0):.1f} GB/s read"
    unmeasured = "There is no GPU here: variants for GPUs are correct under test and unmeasured."
    head = [
        f"Measured on {found['date']} in {found['seconds']} s ({found['sittings']} sitting(s)): {found['machine']}, "
        f"{found['load_at_end']:.1f} at the end; {used or 'headless only'};",
        f"Chromium's adapter: {first.get('adapter', 'none')}, ceilings {ceilings}.",
        "Times are of runs back to back; decode, of which each step waits for the last, is one submit and one wait.",
        "Measured on a GPU." if found["gpu"] else unmeasured,
        *(f"A part failed: {problem}" for problem in found["problems"]),
    ]
    parts = [
        head, grid(HEADS, operations(found)), model_lines(found["model"]),
        grid(TARGET_HEADS, map(target_cells, targets(found))), memory_lines(found["memory"]),
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts if part)


def into_readme(text: str, report: str) -> str:
    """README with the report between its two marks. Raises ValueError when they are not there."""
    before, _, rest = text.partition(START)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"README has no {START} followed by {END}.")
    return f"{before}{START}\n{report}\n{END}{after}"
