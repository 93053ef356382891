"""Stage one: random blocks said again and again, over a vocabulary that doubles. Induction heads form here.

With all tokens from the start the loss stays on a plateau (copying anything from the context); with eight tokens the
circuit of previous-token head and induction head pays at once, and each doubling keeps it. Loss on the repeats only,
over the ids in use, and without SwiGLU layers: the circuit does not need them and they are two thirds of the cost.
Elhage et al. 2021 and Olsson et al. 2022 for the circuit.
"""

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from weights.training.network import Network
from weights.training.optimise import next_token_loss
from weights.training.rows import END_ID, repeated


@dataclass(frozen=True)
class Repeats:
    """The recipe. The vocabulary starts at `first` ids and doubles when the moving average of the accuracy passes
    good_enough, at the earliest `patience` steps after the last doubling.
    """

    steps: int = 500
    rows: int = 24
    T: int = 96
    first: int = 8
    patience: int = 25
    good_enough: float = 0.92
    shortest: int = 8
    longest: int = 39
    muon: float = 0.02
    adam: float = 3e-3
    decay: float = 0.01
    cool_down: float = 0.1

    def grow(self, state: dict, accuracy: float, V: int) -> None:
        """Note a step's accuracy in the state {vocabulary, average, since} and double where it is time."""
        state["average"] += 0.1 * (accuracy - state["average"])
        state["since"] += 1
        if state["average"] > self.good_enough and state["since"] >= self.patience and state["vocabulary"] < V:
            state.update(vocabulary=min(V, 2 * state["vocabulary"]), average=0.5, since=0)

    def batch(self, r: Random, V: int) -> tuple[Tensor, Tensor]:
        """ids (rows, T + 1) below V, and which of the T targets count. Half of the rows begin with the end token."""
        ids = torch.zeros(self.rows, self.T + 1, dtype=torch.long)
        counted = torch.ones(self.rows, self.T)
        for b in range(self.rows):
            row, block = repeated(r, self.T, V, self.shortest, self.longest)
            lead = r.randrange(2)
            ids[b, lead:] = torch.tensor(row[: self.T + 1 - lead])
            ids[b, :lead] = END_ID
            counted[b, : block + lead] = 0
        return ids, counted


def loss(network: Network, ids: Tensor, counted: Tensor, V: int) -> dict[str, Tensor]:
    """Cross-entropy on the repeats in nats, and the share of them that is predicted right."""
    logits = network.logits(network(ids[:, :-1], feed_forward=False)[-1], V)
    right = (logits.argmax(-1) == ids[:, 1:]) * counted
    return {"loss": next_token_loss(logits, ids[:, 1:], counted), "accuracy": (right.sum() / counted.sum()).detach()}
