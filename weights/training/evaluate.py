"""The evaluation: every figure that the model card states and that the tests hold the committed model to.

    python -m weights.training evaluate weights/tiny [--text stories.txt]
"""

from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from weights.training import depth, measures
from weights.training.probe import Probe
from weights.training.rows import Text

PREVIOUS_TOKEN_LIMIT = 0.3  # a head above it reads a table without looking it up, when the table stands just before
FORWARD_THREADS = 1  # matrices this small only lose by being shared out


@dataclass
class Report:
    """shares and nats: name -> number. heads: score name -> [L, N]. depth: text kind -> per depth lists."""

    figures: dict[str, float] = field(default_factory=dict)
    heads: dict[str, Tensor] = field(default_factory=dict)
    depth: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def best(self, score: str, allowed: Tensor | None = None) -> tuple[float, int, int]:
        """The highest value of a score, with its layer and head; allowed: bool [L, N], where to search."""
        values = self.heads[score] if allowed is None else self.heads[score].masked_fill(~allowed, -2.0)
        layer, head = divmod(int(values.argmax()), values.shape[1])
        return float(values[layer, head]), layer, head

    def reference_head(self) -> tuple[int, int]:
        """The head that the default prompt points at: most on "cat" among those that pass the random-order test."""
        passing = self.heads["selectivity"] >= 0.7
        margin = self.heads["it_to_cat"] - self.heads["it_to_mat"]
        chosen = (margin.masked_fill(~passing, -2.0) if passing.any() else margin).argmax()
        layer, head = divmod(int(chosen), margin.shape[1])
        return layer, head

    def look_up_head(self) -> tuple[float, int, int]:
        """The best table look-up among heads that are not previous-token heads."""
        return self.best("look_up", self.heads["previous_token"] <= PREVIOUS_TOKEN_LIMIT)


def evaluate(folder: Path, texts: list[Text] = ()) -> Report:
    """Measure a checkpoint folder; texts: natural texts whose held-out part is measured too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(FORWARD_THREADS)
    try:
        return _evaluate(Probe.open(folder), texts)
    finally:
        torch.set_num_threads(threads)


def _evaluate(probe: Probe, texts: list[Text]) -> Report:
    report = Report()
    report.figures["repeats_accuracy"], scores = measures.random_repeats(probe.model)
    report.heads.update(scores)
    report.figures["pronoun_accuracy"], report.heads["selectivity"] = measures.pronoun_choice(probe)
    for noun, weights in measures.default_prompt(probe).items():
        report.heads[f"it_to_{noun}"] = weights
    columns, report.heads["look_up"] = measures.table_columns(probe)
    report.figures |= {f"column_after{word.replace(' ', '_').lower()}": share for word, share in columns.items()}
    report.figures["name_accuracy"], (first, second) = measures.name_recall(probe)
    report.heads |= {"receiver_first": first, "receiver_second": second}
    report.depth["grammar"] = depth.through_depth(probe, depth.held_out_documents())
    for text in texts:
        report.depth[text.name] = depth.through_depth(probe, text.held_out)
    return report
