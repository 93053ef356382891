"""The table and the targets, as Markdown, from what bench/full.py collected."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

START, END = "<!-- bench: written by `python -m bench --readme` -->", "<!-- /bench -->"
PEERS = {
    "ort-nosubgroups": "ORT WebGPU, no subgroups", "ort-webgpu": "ORT WebGPU, default",
    "ort-wasm": "ORT WASM, 2 threads", "tfjs": "tfjs WebGPU",
}  # fmt: skip
HEADS = ("operation", "ours, ms", "variant", "GFLOP/s", "of FMA", "of read", "error", *PEERS.values())
TURNS = (
    "What is compared took turns in the same minutes: times are medians of all turns (in brackets the least and the "
    "most), a verdict is the median of the turns' own ratios."
)
NOTES = """\
Sizes are SmolLM2's: attention and decode with 9 query heads on 3 key/value heads of 64, products from 576 to 1536,
the lens from 576 to 49152; the last table adds up the memory of its 30 layers, without the three images from which a
CPU driver reads queries, keys and values (13.2 MB at 8,192 tokens, shared by all layers). Lines that name no place
ran in Chromium. "Variant" is the one of our kernels that ran. "Of FMA" and "of read" are shares of ceilings measured
beside that line, which differ from the heading's; the ceiling of reading is 64 MiB read once, so that "of read" can
pass 100 % where what is read stays in a CPU's caches, as decode's 3.1 MB do. "Wrong" means that the peer's result
failed the same check. "decode" is what a layer costs within a token, which waits once for all its layers; "waited
for" is one call alone.
"""
TARGET_HEADS = ("target", "wanted", "measured", "verdict")
BERTVIZ_S = (
    31.0  # model view of 144 heads at T = 128 in the same kind of browser, measured once (KERNELS study), not rerun
)


@dataclass(frozen=True)
class Target:
    """A ratio or a time that was promised, and what each turn gave. at_least: larger is better."""

    words: str
    wanted: float
    ratios: Sequence[float]
    unit: str = "x"
    at_least: bool = True

    @property
    def measured(self) -> float | None:
        """The median of the turns."""
        return statistics.median(self.ratios) if self.ratios else None

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


def keys_of(op: str) -> dict[str, str]:
    """The times that an operation shows, and what its line says of each.

    A token's pass through a decoder waits once for all its layers, so decode is timed as the others, back to back: what
    a layer costs. Waited for by itself, submit to the end of waiting, it is shown too.
    """
    return {"ms": "", "wait_ms": ", waited for"} if op == "decode" else {"ms": ""}


def figure(value: float, digits: int = 3) -> str:
    """So many digits that count, thousands written out."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.{digits}g}"


def spread(values: Sequence[float]) -> str:
    """Least to most of several readings, in brackets."""
    return f" ({figure(min(values))} to {figure(max(values))})" if len(values) > 1 else ""


def time_words(report: Mapping[str, Any], key: str) -> str:
    """A median, and from where to where its readings go."""
    return figure(report[key], 4) + spread([each[key] for each in report.get("readings", [])])


def peer_words(report: Mapping[str, Any] | None, key: str) -> str:
    """A peer's cell: its time, or why it has none."""
    if report is None:
        return "not run"
    if "error" in report:
        return "failed"
    return f"wrong, error {report['max_error']:.1g}" if report.get("ms") is None else time_words(report, key)


def ours_cells(report: Mapping[str, Any], key: str, where: str = "") -> list[str]:
    """Our cells of one line."""
    given = report["given"]
    name = " ".join([given["op"], *(f"{size} {value}" for size, value in given.items() if size != "op")])
    name += keys_of(given["op"])[key] + where
    if "error" in report:
        return [name, "wrong or failed", "", "", "", "", ""]
    shown = report["ms"] / report[key]  # rates are those of the time that is shown
    return [
        name, time_words(report, key), report["variant"] or "", f"{shown * report['gflops']:.1f}",
        f"{shown * report['of_fma']:.0%}", f"{shown * report['of_read']:.0%}", f"{report['max_error']:.0e}",
    ]  # fmt: skip


def operations(found: Mapping[str, Any]) -> Iterator[list[str]]:
    """The lines of the first table."""
    for line in found["side_by_side"]:
        for key in keys_of(line["given"]["op"]):
            yield [*ours_cells(line["ours"], key), *(peer_words(line.get(kind), key) for kind in PEERS)]
    empty = [""] * len(PEERS)
    for report in found["alone"]:
        yield [*ours_cells(report, "ms"), *empty]
    for place, reports in found["headless"].items():
        for report in reports:
            for key in keys_of(report["given"]["op"]) if "given" in report else ():
                yield [*ours_cells(report, key, f", headless {adapter(report, place)}"), *empty]


def adapter(report: Mapping[str, Any], place: str) -> str:
    return report.get("adapter", place).partition(" (")[0]


def ms(report: Mapping[str, Any] | None, key: str = "ms") -> float | None:
    """A time, if there is one."""
    return None if report is None or "error" in report else report.get(key)


def ratio(above: float | None, below: float | None) -> tuple[float, ...]:
    """Of two times that took no turns: one ratio, or none."""
    return (above / below,) if above and below else ()


def targets(found: Mapping[str, Any]) -> list[Target]:
    """What was promised, beside what this run gave."""
    lines = {(line["given"]["op"], line["given"]["T"]): line for line in found["side_by_side"]}

    def faster(words: str, wanted: float, op: str, T: int, kind: str, key: str = "ms") -> Target:
        line = lines.get((op, T), {})
        turns = line.get("ratios", {}).get(kind, {}).get(key)
        ratios = turns or ratio(ms(line.get(kind), key), ms(line.get("ours"), key))
        return Target(f"{words} against {PEERS[kind]}", wanted, ratios)

    rows = [
        faster(f"prefill T {T}", wanted, "attention", T, kind)
        for kind, wanted in (("ort-nosubgroups", 10), ("tfjs", 40), ("ort-wasm", 3))
        for T in (512, 1024, 2048)
    ]
    rows.append(faster("prefill T 128", 6, "attention", 128, "ort-nosubgroups"))
    for kind, wanted in (("ort-nosubgroups", 80), ("ort-wasm", 1)):
        for key, how in (("ms", "back to back"), ("wait_ms", "waited for")):
            rows.append(faster(f"decode 1 x 2048, {how},", wanted, "decode", 2048, kind, key))
    for place, reports in found["headless"].items():
        asked = {"op": "attention", "T": 2048}
        long = next((r for r in reports if r.get("given") == asked and "error" not in r), {})
        where = f"headless {adapter(long, place)}"
        rows.append(Target(f"prefill T 2048, share of the FMA ceiling, {where}", 20, shares(long), "%"))
    return rows + heatmap_targets(found, lines) + model_targets(found["model"], found["page"])


def shares(report: Mapping[str, Any]) -> tuple[float, ...]:
    """Per cent of the FMA ceiling, of each reading beside its own."""
    if "readings" not in report:
        return (report["of_fma"] * 100,) if report else ()
    work = report["gflops"] * report["ms"]
    return tuple(100 * work / each["ms"] / each["fma_gflops"] for each in report["readings"])


def heatmap_targets(found: Mapping[str, Any], lines: Mapping[tuple, Mapping[str, Any]]) -> list[Target]:
    """Heatmaps beside prefill, and beside the same window of a shorter text."""
    alone = {(r["given"]["op"], r["given"]["T"], r["given"].get("window")): r for r in found["alone"]}

    def beside(window: Mapping[str, Any] | None, base: Mapping[str, Any] | None) -> Sequence[float]:
        return (window or {}).get("against", {}).get("ratios", {}).get("ms") or ratio(ms(window), ms(base))

    wall, prefill = alone.get(("heatmap", 2048, None)), lines.get(("attention", 2048), {}).get("ours")
    far, near = alone.get(("heatmap", 8192, 512)), alone.get(("heatmap", 512, None))
    return [
        Target("heatmap 2048 x 2048 as a share of prefill T 2048", 0.1, beside(wall, prefill), "x", False),
        Target("window 512 x 512 at T 8192 against T 512", 1.3, beside(far, near), "x", False),
    ]


def model_targets(models: Mapping[str, Any], page: Mapping[str, Any]) -> list[Target]:
    """SmolLM2 and the page."""
    ours, peer = models.get("ours"), models.get("ort-nosubgroups smollm2-q4")
    name = "ORT WebGPU q4"

    def faster(key: str) -> Sequence[float]:
        return (peer or {}).get("ratios", {}).get(key) or ratio(ms(peer, key), ms(ours, key))

    def seconds(part: str, key: str) -> Sequence[float]:
        return (page[part][key] / 1000,) if page.get(part) else ()

    return [
        Target(f"SmolLM2 prefill of 64 tokens against {name}", 4, faster("prefill_ms")),
        Target(f"SmolLM2 decode against {name}", 15, faster("decode_ms")),
        Target("14-token prompt to first heatmaps", 1.5, seconds("short", "first_ms"), "s", False),
        Target("wall of 270 heads at T 256, drawn", BERTVIZ_S / 10, seconds("long", "wall_ms"), "s", False),
    ]


def target_cells(target: Target) -> list[str]:
    sign = ">=" if target.at_least else "<="
    measured = f"{figure(target.measured)} {target.unit}{spread(target.ratios)}" if target.ratios else ""
    return [target.words, f"{sign} {target.wanted:g} {target.unit}", measured, target.verdict]


def summary(found: Mapping[str, Any]) -> str:
    """How many targets are met, and which are not."""
    every = [target_cells(target) for target in targets(found)]
    short = [f"{words} ({measured.partition(' (')[0] or verdict}, wanted {wanted})"
             for words, wanted, measured, verdict in every if verdict != "met"]  # fmt: skip
    rest = f"; not: {'; '.join(short)}" if short else ""
    return f"{len(every) - len(short)} of {len(every)} targets are met{rest}."


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
        "Times are of runs back to back and one wait for all; a decode that is waited for is one submit and one wait.",
        *([TURNS] if any("ratios" in line for line in found["side_by_side"]) else []),
        "Measured on a GPU." if found["gpu"] else unmeasured,
        *(f"A part failed: {problem}" for problem in found["problems"]),
    ]
    parts = [
        head, [summary(found)], ["<details><summary>Every line of that run, and what its columns mean</summary>"],
        NOTES.splitlines(), grid(HEADS, operations(found)), model_lines(found["model"]),
        grid(TARGET_HEADS, map(target_cells, targets(found))), memory_lines(found["memory"]), ["</details>"],
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts if part)


def into_readme(text: str, report: str) -> str:
    """README with the report between its two marks. Raises ValueError when they are not there."""
    before, _, rest = text.partition(START)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"README has no {START} followed by {END}.")
    return f"{before}{START}\n{report}\n{END}{after}"
