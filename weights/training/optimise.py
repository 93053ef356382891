"""One step of training: the loss, its gradients, Muon for matrices and AdamW for the rest, one schedule for both."""

import torch
import torch.nn.functional as F
from torch import Tensor

from weights.training.muon import Muon
from weights.training.network import Network

WARM_UP_STEPS = 60
CLIP = 1.0


def schedule(step: int, steps: int, cool_down: float) -> float:
    """Factor on the learning rates: up over WARM_UP_STEPS, level, down to zero over the last share `cool_down`."""
    return min(1.0, (step + 1) / WARM_UP_STEPS, (steps - step) / (steps * cool_down))


class Optimiser:
    """Muon with rate `muon` on matrices, AdamW with rate `adam` on embedding and norms."""

    def __init__(self, network: Network, muon: float, adam: float, decay: float, feed_forward: bool = True):
        self.network, self.rates = network, (muon, adam)
        self.muon = Muon(network.matrices(feed_forward), decay=decay)
        self.adam = torch.optim.AdamW(network.others(), lr=adam, betas=(0.9, 0.95), weight_decay=0.01, fused=True)

    def step(self, factor: float) -> None:
        """Clip, step both, clear the gradients."""
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
        self.muon.lr = self.rates[0] * factor
        for group in self.adam.param_groups:
            group["lr"] = self.rates[1] * factor
        self.adam.step()
        self.muon.step()
        self.network.zero_grad(set_to_none=True)

    def state_dict(self) -> dict:
        """What a resumed run needs."""
        return {"muon": self.muon.state_dict(), "adam": self.adam.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        """Take up what state_dict gave."""
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])


def next_token_loss(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """Mean cross-entropy in nats. logits (B, T, V), targets (B, T), counted (B, T): 1 where a target counts."""
    loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    counted = counted.flatten()
    return (loss * counted).sum() / counted.sum()
