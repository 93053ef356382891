"""The evaluation as plain numbers: for card.json, heads.json and the command line."""

from weights.training.evaluate import Report

SCORES = (
    "previous_token", "induction", "duplicate_token", "first_token", "selectivity", "receiver_first",
    "receiver_second",
    "look_up",
)
NAMES = {  # score -> what a head with at least NAMED of it is called
    "previous_token": "previous token",
    "induction": "induction",
    "duplicate_token": "duplicate token",
    "selectivity": "pronoun",
    "receiver_first": "name, first of two",
    "receiver_second": "name, second of two",
    "look_up": "table look-up",
    "first_token": "rests on the first token",
}
NAMED = 0.5


def summary(report: Report) -> dict:
    """Figures, the best head for each job, and what is seen through depth. Heads are [layer, head]."""
    value, layer, head = report.look_up_head()
    reference = report.reference_head()
    best = {score: report.best(score) for score in SCORES}
    return {
        "figures": {name: round(figure, 4) for name, figure in report.figures.items()},
        "best": {score: _scored(*found) for score, found in best.items()} | {"look_up": _scored(value, layer, head)},
        "default_prompt": {
            "head": list(reference),
            "selectivity": round(float(report.heads["selectivity"][reference]), 4),
            "it_to_cat": round(float(report.heads["it_to_cat"][reference]), 4),
            "it_to_mat": round(float(report.heads["it_to_mat"][reference]), 4),
        },
        "depth": {
            text: {name: [round(value, 4) for value in values] for name, values in depths.items()}
            for text, depths in report.depth.items()
        },
    }


def _scored(value: float, layer: int, head: int) -> dict:
    return {"head": [layer, head], "score": round(value, 4)}


def head_list(report: Report) -> list[dict]:
    """One entry per head, layer by layer: its scores and what it is called, [] when nothing stands out."""
    L, N = report.heads["induction"].shape
    entries = []
    for layer in range(L):
        for head in range(N):
            scores = {score: round(float(report.heads[score][layer, head]), 3) for score in SCORES}
            called = [name for score, name in NAMES.items() if scores[score] >= NAMED]
            entries.append({"layer": layer, "head": head, **scores, "called": called})
    return entries
