"""Muon: momentum whose steps are made orthogonal. Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/

    M <- beta M + (1 - beta) G;   U = G + beta (M - G);   step = lr sqrt(max(1, rows / columns)) orthogonal(U)
    orthogonal(U): five Newton-Schulz steps, which pull all singular values of U towards 1

Matrices of one shape, or its transpose, are stacked and stepped together: on a CPU that costs a tenth of a step.
"""

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonal(u: Tensor, steps: int = 5) -> Tensor:
    """Nearly the closest matrices with orthonormal rows. u: (matrices, rows, columns), rows <= columns."""
    a, b, c = NEWTON_SCHULZ
    x = u / (u.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon:
    """Steps matrices after their gradients. lr: set before each step. decay: weight decay per unit of lr."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95, decay: float = 0.01):
        self.lr, self.momentum, self.decay = 0.0, momentum, decay
        self.stacks: dict[tuple[int, int], list[nn.Parameter]] = {}
        for parameter in parameters:
            self.stacks.setdefault(tuple(sorted(parameter.shape)), []).append(parameter)
        self.moments = {shape: torch.zeros(len(stack), *shape) for shape, stack in self.stacks.items()}

    @torch.no_grad()
    def step(self) -> None:
        """One step with the gradients that the parameters hold."""
        for shape, stack in self.stacks.items():
            gradient = torch.stack([_lying(p.grad) for p in stack])  # (matrices, rows, columns)
            moment = self.moments[shape].lerp_(gradient, 1 - self.momentum)
            for parameter, step in zip(stack, orthogonal(gradient.lerp(moment, self.momentum)), strict=True):
                scale = max(1, parameter.shape[0] / parameter.shape[1]) ** 0.5
                turned = step if parameter.shape == step.shape else step.t()
                parameter.mul_(1 - self.lr * self.decay).add_(turned, alpha=-self.lr * scale)

    def state_dict(self) -> dict:
        """What a resumed run needs."""
        return {"moments": list(self.moments.values())}

    def load_state_dict(self, state: dict) -> None:
        """Take up what state_dict gave."""
        self.moments = dict(zip(self.moments, state["moments"], strict=True))


def _lying(x: Tensor) -> Tensor:
    """The matrix, transposed where it has more rows than columns."""
    return x if x.shape[0] <= x.shape[1] else x.t()
