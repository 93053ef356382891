"""A model on the device: weights uploaded once, prompts run into traces, tokens generated against a KV cache.

    model = Model.load(request_device(), folder)
    trace = model.run(ids)                          # ids -> webgpu/trace.py
    for token, logprob in model.generate(ids, max_tokens=20): ...

Errors are one class per rule, each with a `code` that static/gpu/runtime.js shares. Left out on purpose: sampling (the
page's static/lib/sampler.js); generate here is greedy, which is what a test can compare.
"""

import threading
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from webgpu.buffers import Buffers
from webgpu.config import Config, parse_config
from webgpu.device import Device
from webgpu.generate import generate
from webgpu.kernels import Kernels
from webgpu.layout import (
    EMBED,
    HEAD,
    MAX_BINDING_BYTES,
    check_finite,
    check_names,
    check_shape,
    check_twin,
    place,
    stored_parts,
    tensor_shapes,
)
from webgpu.pieces import Placed
from webgpu.plan import CHUNK_TOKENS, RECORD, TRACE, ZERO, Builder, Forward, merge_buffers, prefill
from webgpu.rope import tables
from webgpu.trace import Trace
from webgpu.variants import first_choice
from weights.checkpoint import Blocks, open_checkpoint

Progress = Callable[[float], None]


class RunError(ValueError):
    """A prompt that cannot be run; `code` names the rule."""

    code = "run"


class EmptyPrompt(RunError):
    """No tokens."""

    code = "prompt-empty"


class TooManyTokens(RunError):
    """More tokens than the model was trained for, or than the device's buffers hold."""

    code = "prompt-too-long"


class UnknownToken(RunError):
    """An id outside the vocabulary."""

    code = "token-unknown"


class Cancelled(RuntimeError):
    """The caller's event was set between two submits."""

    code = "cancelled"


class Model:
    """Weights on a device and what runs on them. Make one with `Model.load`; `destroy` frees the weights."""

    def __init__(self, kernels: Kernels, config: Config, placed: Mapping[str, Placed]) -> None:
        self.kernels, self.config, self.placed = kernels, config, placed
        # operation -> variant (webgpu/variants.py); the first where it says nothing
        self.choice = first_choice(kernels.device.features, kernels.device.software)
        self.most_bytes = self.kernels.gpu.limits["max-storage-buffer-binding-size"]
        pieces = [piece for tensor in placed.values() for piece in tensor.pieces]
        sizes = {piece.buffer: piece.bytes for piece in pieces}
        sizes |= {piece.scales: piece.scale_bytes for piece in pieces if piece.scale_bytes}
        self.weights = Buffers(self.kernels, sizes, pooled=False)

    @classmethod
    def load(
        cls, device: Device, folder: Path | str, progress: Progress | None = None, kernels: Kernels | None = None,
        most_bytes: int = MAX_BINDING_BYTES,
    ) -> "Model":  # fmt: skip
        """Open a checkpoint folder and upload it, tensor by tensor.

        kernels: those compiled for an earlier model; most_bytes: where tensors are split. Raises CheckpointError for
        the files, UnsupportedConfig for config.json, WeightsMismatch for the tensors.
        """
        checkpoint = open_checkpoint(folder)
        config = parse_config(checkpoint.config)
        shapes = tensor_shapes(config)
        check_names(config, checkpoint.names)
        for name, shape in shapes.items():
            check_shape(name, checkpoint.shape(name), shape)
        if config.tied and HEAD in checkpoint:
            check_shape(HEAD, checkpoint.shape(HEAD), shapes[EMBED])
            check_twin(checkpoint.read(EMBED), checkpoint.read(HEAD))
        dtypes = {name: checkpoint.dtype(name) for name in shapes}
        model = cls(kernels or Kernels(device), config, place(config, dtypes, most_bytes))
        for done, name in enumerate(shapes, 1):
            values = checkpoint.read(name)
            check_finite(name, values)
            model.upload(name, values)
            if progress:
                progress(done / len(shapes))
        return model

    def upload(self, name: str, values: np.ndarray | Blocks) -> None:
        """Copy one tensor, as Checkpoint.read gives it, into its pieces: matrices as they are, vectors as f32."""
        parts = stored_parts(values)
        if len(self.placed[name].shape) == 1:
            parts = (widen(values),)
        for piece in self.placed[name].pieces:
            for buffer, part in zip((piece.buffer, piece.scales), parts, strict=False):
                rows = part[piece.row0 : piece.row0 + piece.rows]
                self.kernels.write(self.weights[buffer], rows, piece.at * rows[:1].nbytes)

    def run(
        self, ids: Sequence[int], record: bool = False, chunk: int = CHUNK_TOKENS, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> Trace:  # fmt: skip
        """Run a prompt. record: keep every named intermediate; chunk: tokens per forward, a multiple of 64.

        Raises EmptyPrompt, UnknownToken, TooManyTokens, and Cancelled once `cancel` is set.
        """
        self.check(ids)
        T = len(ids)
        keep = RECORD if record else TRACE
        plans = prefill(self.config, self.placed, T=T, capacity=T, keep=keep, chunk=chunk, choice=self.choice)
        buffers = self.allocate(plans, T)
        try:
            self.run_forwards(plans, ids, buffers, T, progress, cancel)
        except BaseException:
            buffers.destroy()
            raise
        buffers.destroy([name for name in buffers if "." not in name])  # kept ones are name.layer, the rest scratch
        return Trace(self, list(ids), buffers)

    def generate(
        self, ids: Sequence[int], max_tokens: int, stop_ids: Sequence[int] = ()
    ) -> Iterator[tuple[int, float]]:
        """Continue a prompt greedily against a KV cache: (id, log-probability), one submit a token.

        Raises as `run` does; TooManyTokens when prompt and continuation together pass the model's limit.
        """
        self.check(ids, max_tokens)
        yield from generate(self, ids, max_tokens, stop_ids)

    def check(self, ids: Sequence[int], more: int = 0) -> None:
        """Refuse a prompt that is empty, has unknown ids, or with `more` tokens passes the model's limit."""
        if not ids:
            raise EmptyPrompt("The prompt has no tokens: type at least one character.")
        for token in ids:
            if not 0 <= token < self.config.V:
                raise UnknownToken(
                    f"Token id {token} is outside this model's vocabulary: allowed are 0 to {self.config.V - 1}."
                )
        # A cache keeps keys as they were rotated, so dynamic scaling cannot grow while generating.
        limit = self.config.rope.positions if more else self.config.max_tokens
        if len(ids) + more > limit:
            what = f"{len(ids)} tokens" + (f" and {more} to generate" if more else "")
            raise TooManyTokens(f"{what} are more than this model's limit of {limit} tokens: shorten the prompt.")

    def allocate(self, plans: list[Forward], T: int) -> Buffers:
        """Make the buffers of plans, after checking them against the device's limit."""
        sizes = merge_buffers(plans)
        name, size = max(sizes.items(), key=lambda item: item[1])
        if size > self.most_bytes:
            raise TooManyTokens(
                f"{T} tokens need a buffer of {size} bytes ({name}) and this device binds {self.most_bytes} "
                f"at most: shorten the prompt to {T * self.most_bytes // size} tokens."
            )
        return Buffers(self.kernels, sizes)

    def run_forwards(
        self, plans: list[Forward], ids: Sequence[int], buffers: Buffers, total: int, progress: Progress | None = None,
        cancel: threading.Event | None = None,
    ) -> None:  # fmt: skip
        """Upload ids and rotation tables of each forward and run it. ids: those of all plans, in order."""
        work, done, at = sum(step.flops for plan in plans for step in plan.steps), 0, 0
        for plan in plans:
            cos, sin = tables(self.config.rope, self.config.H, plan.offset, plan.T, total)
            self.kernels.write(buffers["ids"], np.array(ids[at : at + plan.T], np.uint32))
            self.kernels.write(buffers["cos"], cos)
            self.kernels.write(buffers["sin"], sin)
            at += plan.T
            for flops in self.run_steps(plan, buffers, cancel):
                done += flops
                if progress:
                    self.kernels.fence()
                    progress(done / work)

    def run_steps(self, plan: Builder, buffers: Mapping, cancel: threading.Event | None = None) -> Iterator[int]:
        """Submit a plan's steps one by one, yielding the work of each."""
        every = ChainMap(buffers, self.weights)
        for step in plan.steps:
            if cancel is not None:
                self.kernels.fence()
                if cancel.is_set():
                    raise Cancelled("The run was cancelled.")
            if step.copies:
                encoder = self.kernels.gpu.create_command_encoder()
                for copy in step.copies:
                    target, start, size = every[copy.target], copy.target_start, copy.bytes
                    if copy.source == ZERO:
                        encoder.clear_buffer(target, start, size)
                    else:
                        encoder.copy_buffer_to_buffer(every[copy.source], copy.source_start, target, start, size)
                self.kernels.gpu.queue.submit([encoder.finish()])
            self.kernels.run(step.dispatches, every)
            yield step.flops

    def destroy(self) -> None:
        """Free the weights. Traces of this model answer no more queries afterwards."""
        self.weights.destroy()


def widen(values: np.ndarray) -> np.ndarray:
    """A vector as f32; uint16 holds bf16 bits."""
    if values.dtype == np.uint16:
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)
