"""Ask python_ref for tensors by name, cheaply enough to ask again: the only server module that imports torch.

A prompt's residual stream is kept at every depth (L * T * D numbers). A layer's intermediates are then one block away,
the lens and the logits one unembedding, so that asking layer by layer never repeats the forward pass and no [T, V] or
[L, N, T, T] array in float64 is ever held.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

import python_ref
from python_ref.trace import check_ids, check_names
from server.trace_names import GLOBAL_SHAPES, LAYER_SHAPES, shape_of
from weights.checkpoint import Checkpoint, open_checkpoint

# Up to this many weights the oracle computes in float64; a larger model would not fit common machines twice over.
FLOAT64_WEIGHTS = 500_000_000


class Oracle:
    """One model, and the last prompt it ran. dtype: torch.float64, or float32 for large models."""

    def __init__(self, folder: Path):
        """Raises CheckpointError and OracleError subclasses for what cannot be read or run exactly."""
        self.folder = folder
        self.dtype = torch.float64 if weights_of(open_checkpoint(folder)) <= FLOAT64_WEIGHTS else torch.float32
        self.model = python_ref.load_model(folder, dtype=self.dtype)
        self.sizes = {key: getattr(self.model.config, key) for key in "LNKDHFV"}
        self._ids: list[int] | None = None
        self._resid: torch.Tensor | None = None  # [L + 1, T, D]: before the first layer, ..., after the last

    @property
    def names(self) -> tuple[str, ...]:
        """What this model can be asked for."""
        return (*python_ref.trace_names(self.model), "lens_logits")

    @torch.inference_mode()
    def trace(
        self,
        ids: Sequence[int],
        include: Iterable[str],
        layers: Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
    ) -> dict[str, np.ndarray]:
        """The tensors in `include` as float32 (ids as int32), shapes as in server/trace_names.py.

        layers, positions (rows of logits): all by default. Raises OracleError subclasses.
        """
        include = list(dict.fromkeys(include))
        check_names(self.model, [name for name in include if name != "lens_logits"])
        self._run(list(ids))
        layers = list(range(self.sizes["L"]) if layers is None else layers)
        found = self._globals([name for name in include if name in GLOBAL_SHAPES], positions)
        found |= self._layers([name for name in include if name in LAYER_SHAPES], layers)
        return {name: found[name] for name in include}

    @torch.inference_mode()
    def lens_column(self, ids: Sequence[int], position: int) -> tuple[np.ndarray, np.ndarray]:
        """The logit lens through depth at one position: ids and log-probabilities, [L+1, 10] each."""
        self._run(list(ids))
        best, logprobs = python_ref.logit_lens(self.model, self._resid[:, [position]])
        return best[:, 0].numpy(), as_float32(logprobs[:, 0])

    @torch.inference_mode()
    def block(self, layer: int, resid_pre: np.ndarray, include: Iterable[str]) -> dict[str, np.ndarray]:
        """One layer alone, from a residual stream [T, D] given to it. Shapes without the layer dimension."""
        found = python_ref.trace_block(self.model, layer, torch.from_numpy(resid_pre).to(self.dtype), include=include)
        return {name: x.numpy() for name, x in found.items()}

    @torch.inference_mode()
    def head(self, resid: np.ndarray) -> dict[str, np.ndarray]:
        """final_norm [T, D] and logits [T, V] of a residual stream [T, D] given to it."""
        normed = self.model.final_norm(torch.from_numpy(resid).to(self.dtype))
        return {"final_norm": normed.numpy(), "logits": self.model.logits(normed).numpy()}

    @torch.inference_mode()
    def lens(self, resid: np.ndarray) -> dict[str, np.ndarray]:
        """lens_ids and lens_logprobs of residual streams [depths, T, D] given to it."""
        ids, logprobs = python_ref.logit_lens(self.model, torch.from_numpy(resid).to(self.dtype))
        return {"lens_ids": ids.numpy(), "lens_logprobs": logprobs.numpy()}

    def _run(self, ids: list[int]) -> None:
        if ids == self._ids:
            return
        self._ids = self._resid = None
        resid = [self.model.embed(check_ids(self.model, ids))[None]]
        for block in self.model.blocks:
            resid.append(block(resid[-1]))
        self._ids, self._resid = ids, torch.cat(resid)

    def _globals(self, names: list[str], positions: Sequence[int] | None) -> dict[str, np.ndarray]:
        found = {}
        normed = self.model.final_norm(self._resid[-1])
        if "lens_ids" in names or "lens_logprobs" in names:
            lens = python_ref.logit_lens(self.model, self._resid)
            found["lens_ids"], found["lens_logprobs"] = lens[0].numpy(), as_float32(lens[1])
        if "logits" in names:
            rows = normed if positions is None else normed[list(positions)]
            # Row by row: float64 logits of a whole prompt would take 400 KB a token.
            logits = [as_float32(self.model.logits(row)) for row in rows]
            found["logits"] = np.array(logits, np.float32).reshape(len(rows), self.sizes["V"])
        if "lens_logits" in names:
            rows = self._resid if positions is None else self._resid[:, list(positions)]
            found["lens_logits"] = np.stack(
                [as_float32(self.model.logits(self.model.final_norm(depth))) for depth in rows]
            )
        if "token_ids" in names:
            found["token_ids"] = np.array(self._ids, np.int32)
        if "embed" in names:
            found["embed"] = as_float32(self._resid[0])
        if "final_norm" in names:
            found["final_norm"] = as_float32(normed)
        return found

    def _layers(self, names: list[str], layers: list[int]) -> dict[str, np.ndarray]:
        tokens = len(self._ids)
        found = {
            name: np.empty(shape_of(name, self.sizes, tokens=tokens, layers=len(layers), rows=0), np.float32)
            for name in names
        }
        for row, layer in enumerate(layers if names else ()):
            block = python_ref.trace_block(self.model, layer, self._resid[layer], include=names)
            for name in names:
                found[name][row] = as_float32(block[name])
        return found


def as_float32(x: torch.Tensor) -> np.ndarray:
    """A tensor as a float32 array."""
    return x.to(torch.float32).numpy()


def weights_of(checkpoint: Checkpoint) -> int:
    """How many numbers the checkpoint holds, from its headers."""
    return sum(int(np.prod(checkpoint.shape(name))) for name in checkpoint.names)
