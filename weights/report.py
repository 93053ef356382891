"""What was measured of a model's heads, read from its folder and checked before anyone shows it.

    heads.json    {"model_sha256", "heads": [{"layer", "head", <score>: -1..1, ..., "called": [names]}]}, every head;
                  "measured_on": {<score>: words}, where it is known: what a score was measured on
    prompts.json  {"model_sha256", "prompts": [{"id", "title", "text", "layer", "head", "query", "keys", "weight",
                  "next", "says"}]}: prompts to offer, the head to look at, why, what its query puts on the keys
    card.json     "sha256", "parameters", "training_minutes", "commit", "data", "lens" and "measured": {"depth": {text:
                  {"agreement": [L+1], "cross_entropy": [L+1]}}}; lens: what training did to the logit lens

Scores are those of `python_ref/heads.py`. A file that is absent says nothing. A file that is malformed, or was measured
on other weights, is left out whole and gives one sentence: a folder is often put together by hand, and a number of
another model is worse than none. Whether `query` and `keys` lie within the text is left to whoever cuts it into tokens.
"""

import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from weights import report_fields as fields
from weights.checkpoint import Checkpoint
from weights.errors import CheckpointError, quoted
from weights.strict_json import depth

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 16
MAX_PROMPTS = 24
MOST_MINUTES = 1e9
SCORES = (
    "previous_token", "induction", "duplicate_token", "first_token", "selectivity", "receiver_first",
    "receiver_second", "look_up",
)  # fmt: skip


class ReportUnreadable(CheckpointError):
    """A report is a small regular file that holds one JSON object."""

    code = "report-unreadable"


class ReportStale(CheckpointError):
    """A report belongs to these very weights."""

    code = "report-stale"


@dataclass(frozen=True)
class Measured:
    """The model that a report must be about; its files are hashed once a report names a hash."""

    folder: Path
    checkpoint: Checkpoint
    L: int
    N: int
    max_tokens: int


@dataclass
class Report:
    """heads, prompts: [] when there is no such file. measured_on, depth, about: {} alike.

    problems: a sentence for each file that is left out.
    """

    heads: list[dict] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    measured_on: dict[str, str] = field(default_factory=dict)
    prompts: list[dict] = field(default_factory=list)
    depth: dict[str, dict] = field(default_factory=dict)
    about: dict = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_report(model: Measured) -> Report:
    """All that the folder says about its heads; what cannot be used is named in `problems`. Raises nothing."""
    report = Report()
    for name, read in (("heads.json", _heads), ("prompts.json", _prompts), ("card.json", _card)):
        if not (model.folder / name).exists():
            continue
        try:
            read(_object(model.folder / name), model, report)
        except CheckpointError as error:
            report.problems.append(f"{name} is left out: {error.message}")
    return report


def _object(path: Path) -> dict:
    """The file's JSON object. Raises ReportUnreadable."""
    try:
        if not path.is_file():
            raise ReportUnreadable("it is no regular file; put the file itself there or remove it.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReportUnreadable(f"it cannot be read ({error.strerror}); check its rights.") from None
    if len(data) > MAX_BYTES:
        raise ReportUnreadable(f"it has more than {MAX_BYTES} bytes, the most that is read; write it shorter.")
    try:
        text = data.decode("utf-8")
        if depth(text) > MAX_DEPTH:
            raise ReportUnreadable(f"it nests more than {MAX_DEPTH} levels; write it flat.")
        value = json.loads(text)
    except ReportUnreadable:
        raise
    except ValueError:  # not UTF-8, not JSON, a number of thousands of digits
        raise ReportUnreadable("it is not JSON in UTF-8; write it again or remove it.") from None
    if not isinstance(value, dict):
        raise ReportUnreadable("it is JSON but not an object; it must begin with '{'.")
    return value


def _check_hash(given: object, model: Measured) -> None:
    """The report's hash is the model's. Raises ReportStale."""
    right = model.checkpoint.hash
    if given != right:
        raise ReportStale(
            f"it was measured on other weights (SHA-256 {quoted(given, 24)}; these have {right[:16]}...); "
            "measure these, or remove it."
        )


def _heads(value: dict, model: Measured, report: Report) -> None:
    """Fills `heads`, layer by layer, `scores`, the names that every head has, and `measured_on`."""
    _check_hash(value.get("model_sha256"), model)
    listed = fields.listed(value, "heads", most=model.L * model.N, least=model.L * model.N)
    scores = [name for name in SCORES if name in fields.entry(listed[0], {}, "head 0", rest=True)]
    if not scores:
        raise fields.ReportField(f"no head has a score; each has some of {', '.join(SCORES)}.")
    read = {
        "layer": partial(fields.whole, below=model.L),
        "head": partial(fields.whole, below=model.N),
        **dict.fromkeys(scores, partial(fields.number, low=-1, high=1)),
        "called": partial(fields.texts, most=16, longest=60),
    }
    entries = [fields.entry(item, read, f"head {i}") for i, item in enumerate(listed)]
    places = {(entry["layer"], entry["head"]) for entry in entries}
    if len(places) != len(entries):
        raise fields.ReportField("a head stands there twice; each may stand once, so remove one.")
    on = fields.entry(value.get("measured_on", {}), {}, "measured_on", rest=True)
    measured_on = {name: fields.line(on[name], f"measured_on, {name},", 80) for name in scores if name in on}
    report.heads = sorted(entries, key=lambda entry: (entry["layer"], entry["head"]))
    report.scores = scores
    report.measured_on = measured_on


def _prompts(value: dict, model: Measured, report: Report) -> None:
    """Fills `prompts`."""
    _check_hash(value.get("model_sha256"), model)
    read = {
        "id": partial(fields.line, longest=40),
        "title": partial(fields.line, longest=60),
        "text": partial(fields.text, longest=4000),
        "layer": partial(fields.whole, below=model.L),
        "head": partial(fields.whole, below=model.N),
        "query": partial(fields.whole, below=model.max_tokens),
        "keys": partial(fields.wholes, most=256, below=model.max_tokens),
        "weight": partial(fields.number, low=0, high=1),
        "next": partial(fields.text, longest=100),
        "says": partial(fields.line, longest=400),
    }
    listed = fields.listed(value, "prompts", most=MAX_PROMPTS)
    report.prompts = [fields.entry(item, read, f"prompt {i}") for i, item in enumerate(listed)]


def _card(value: dict, model: Measured, report: Report) -> None:
    """Fills `depth` and `about`; a card that measured nothing says nothing."""
    measured = value.get("measured")
    if not isinstance(measured, dict) or "depth" not in measured:
        return
    hashes = value.get("sha256")
    _check_hash(hashes.get("model.safetensors") if isinstance(hashes, dict) else hashes, model)
    texts = fields.mapping(measured["depth"], "measured.depth", most=8)
    rows = {
        "agreement": partial(fields.numbers, count=model.L + 1, low=0, high=1),
        "cross_entropy": partial(fields.numbers, count=model.L + 1, low=0, high=1e6),
    }
    depths = {
        fields.line(name, "a text's name", 60): fields.entry(item, rows, quoted(name)) for name, item in texts.items()
    }
    about = {
        "parameters": partial(fields.whole, below=10**15),
        "training_minutes": partial(fields.number, low=0, high=MOST_MINUTES),
        "commit": partial(fields.line, longest=60),
        "data": partial(fields.line, longest=400),
        "lens": partial(fields.line, longest=200),
    }
    here = {name: read for name, read in about.items() if name in value}
    report.about = fields.entry(value, here, "the card")
    report.depth = depths
