"""Ask the WGSL kernels for tensors by name, with the same questions and answers as server/oracle_run.py."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from server.trace_names import GLOBAL_SHAPES, NAMES, shape_of
from webgpu.device import Device, request_device
from webgpu.runtime import Model
from webgpu.trace import Trace

# What a pass keeps anyhow; any other name makes it record every intermediate.
ALWAYS_THERE = frozenset(GLOBAL_SHAPES) | {"q", "k", "v", "lse", "pattern", "resid_pre", "resid_post"}


class Kernels:
    """One model on this machine's default adapter."""

    def __init__(self, folder: Path, device: Device | None = None, progress: Callable[[float], None] | None = None):
        """progress: part of the upload that is done.

        Raises DeviceError, CheckpointError, UnsupportedConfig, WeightsMismatch.
        """
        self.device = device or request_device()
        self.model = Model.load(self.device, folder, progress)
        self.sizes = {key: getattr(self.model.config, key) for key in "LNKDHFV"}

    @property
    def names(self) -> tuple[str, ...]:
        """What this model can be asked for."""
        absent = {"lens_logits"} | (set() if self.model.config.qk_norm else {"q_normed", "k_normed"})
        return tuple(name for name in NAMES if name not in absent)

    def trace(
        self,
        ids: Sequence[int],
        include: Iterable[str],
        layers: Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> dict[str, np.ndarray]:
        """The tensors in `include` as float32 (ids as int32), shapes as in server/trace_names.py.

        layers, positions (rows of logits): all by default. Raises RunError for ids that cannot be run.
        """
        include = list(dict.fromkeys(include))
        layers = list(range(self.sizes["L"]) if layers is None else layers)
        trace = self.model.run(list(ids), record=not ALWAYS_THERE.issuperset(include), progress=progress)
        try:
            lens = trace.lens() if {"lens_ids", "lens_logprobs"} & set(include) else {}
            return {name: self._read(trace, name, layers, positions, lens) for name in include}
        finally:
            trace.destroy()

    def lens_column(self, ids: Sequence[int], position: int) -> tuple[np.ndarray, np.ndarray]:
        """The logit lens through depth at one position: ids and log-probabilities, [L+1, 10] each."""
        trace = self.model.run(list(ids))
        try:
            rows = [trace.lens_rows(layer, position, 1) for layer in range(self.sizes["L"] + 1)]
        finally:
            trace.destroy()
        return np.concatenate([row["ids"] for row in rows]), np.concatenate([row["logprobs"] for row in rows])

    def _read(
        self, trace: Trace, name: str, layers: list[int], positions: Sequence[int] | None, lens: dict[str, np.ndarray]
    ) -> np.ndarray:
        if name.startswith("lens_"):
            return lens[name.removeprefix("lens_")]
        if name == "logits" and positions is not None:
            return np.stack([trace.logits(position) for position in positions])
        if name in GLOBAL_SHAPES:
            return trace.read(name)
        tokens = len(trace.ids)
        stacked = np.empty(shape_of(name, self.sizes, tokens=tokens, layers=len(layers), rows=0), np.float32)
        for row, layer in enumerate(layers):
            stacked[row] = trace.read(name, layer)
        return stacked
