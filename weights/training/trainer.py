"""The loop: fixed steps, fixed seeds, a line of progress, checkpoints from which an interrupted run goes on.

What a step sees depends on (seed, stage, step) alone, so a resumed run sees what an uninterrupted one would have seen.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path
from pickle import UnpicklingError
from random import Random

import torch
from torch import Tensor

from weights.training.network import Network
from weights.training.optimise import Optimiser, schedule

CHECKPOINT_EVERY_S = 60.0
REPORT_EVERY = 50


@dataclass(frozen=True)
class Stage:
    """One stage. losses(r) draws a batch and gives named terms; their sum, by `weigh`, is minimised."""

    name: str
    steps: int
    tokens_per_step: int
    rates: tuple[float, float, float]  # Muon, AdamW, decay
    feed_forward: bool  # whether the SwiGLU layers learn
    cool_down: float  # share of the steps over which the rates go to zero
    losses: Callable[[Random], dict[str, Tensor]]
    weigh: Callable[[dict[str, Tensor]], Tensor]
    state: dict = field(default_factory=dict)  # what the stage itself remembers from step to step
    watch: Callable[[], str] | None = None
    watch_every: int = 500


def train(network: Network, stage: Stage, folder: Path, seed: int, say: Callable[[str], None] = print) -> float:
    """Run a stage to its end, from its last checkpoint in `folder` where there is one. Returns seconds of training."""
    optimiser = Optimiser(network, *stage.rates, stage.feed_forward)
    checkpoint = folder / f"{stage.name}.pt"
    step, spent_s = _resume(network, optimiser, stage.state, checkpoint)
    began = saved = time.monotonic()
    first, sums, summed = step, {}, 0
    while step < stage.steps:
        terms = stage.losses(Random(f"{seed} {stage.name} {step}"))
        stage.weigh(terms).backward()
        optimiser.step(schedule(step, stage.steps, stage.cool_down))
        step += 1
        for name, value in terms.items():
            sums[name] = sums.get(name, 0.0) + value.item()
        summed += 1
        if step % REPORT_EVERY == 0 or step == stage.steps:
            seconds_per_step = (time.monotonic() - began) / (step - first)
            say(progress(stage, step, {name: total / summed for name, total in sums.items()}, seconds_per_step))
            sums, summed = {}, 0
        if stage.watch and (step % stage.watch_every == 0 or step == stage.steps):
            say("    " + stage.watch())
        if time.monotonic() - saved > CHECKPOINT_EVERY_S or step == stage.steps:
            saved = time.monotonic()
            _save(network, optimiser, stage.state, checkpoint, step, spent_s + saved - began)
    return spent_s + time.monotonic() - began


def progress(stage: Stage, step: int, means: dict[str, float], seconds_per_step: float) -> str:
    """One line: where the run is, what it costs, when it ends."""
    terms = "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    speed = stage.tokens_per_step / seconds_per_step
    left_min = (stage.steps - step) * seconds_per_step / 60
    return f"{stage.name} {step}/{stage.steps}  {terms}  {speed:,.0f} tokens/s  {left_min:.0f} min left"


def _resume(network: Network, optimiser: Optimiser, memory: dict, checkpoint: Path) -> tuple[int, float]:
    """Take up a checkpoint; the steps and seconds that lie behind it, zero when there is none.

    Raises ValueError when the file is damaged.
    """
    if not checkpoint.exists():
        return 0, 0.0
    try:
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["network"])
        optimiser.load_state_dict(state["optimiser"])
        memory.update(state["memory"])
        return state["step"], state["seconds"]
    except (RuntimeError, EOFError, LookupError, TypeError, ValueError, UnpicklingError) as error:
        raise ValueError(f"{checkpoint} is damaged ({_reason(error)}); remove it to begin this stage again.") from None


def _save(
    network: Network, optimiser: Optimiser, memory: dict, checkpoint: Path, step: int, seconds: float
) -> None:
    """Write beside, then rename: an interruption leaves the old checkpoint or the new one. Raises OSError."""
    state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "memory": memory}
    state |= {"step": step, "seconds": seconds}
    beside = checkpoint.with_suffix(".new")
    try:
        torch.save(state, beside)
    except RuntimeError as error:  # how torch says that a disk is full
        raise OSError(ENOSPC, f"{_reason(error)}; make room, the checkpoint before it is whole", str(beside)) from None
    beside.replace(checkpoint)


def _reason(error: Exception) -> str:
    """The beginning of what torch says."""
    return str(error).partition("\n")[0][:120].rstrip(".") or type(error).__name__
