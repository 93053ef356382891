"""Runs dispatches: pipelines made from the manifest, one compute pass a run, buffers in and out.

A dispatch (see ops.py) names its kernel, overrides, parameters, grid and buffers. Here the names become a
pipeline (cached by kernel and overrides), one 256-byte slice of a uniform buffer and one bind group.
Every buffer's size is rounded up to 16 bytes, because kernels read in vec4s; the rounding is never read as data.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import wgpu

from webgpu.device import Device
from webgpu.images import IMAGE_LAYOUTS, Images
from webgpu.ops import Dispatch
from webgpu.pool import Pool

FOLDER = Path(__file__).parent
UNIFORM_ALIGNMENT_BYTES = 256
NONE = "none"  # the 16-byte buffer bound where a kernel's binding is not used
# How a binding is declared in a bind group's layout, by the manifest's word for it.
LAYOUTS = {
    "read": {"buffer": {"type": "read-only-storage"}},
    "read_write": {"buffer": {"type": "storage"}},
    **IMAGE_LAYOUTS,
}


class KernelError(RuntimeError):
    """A dispatch cannot run; the message names the kernel."""


class UnknownKernel(KernelError):
    """The manifest has no kernel of that name."""


class BadDispatch(KernelError):
    """Overrides, parameters or bindings differ from what the manifest declares."""


class MissingBuffer(KernelError):
    """A binding names a buffer that was not handed in."""


class AliasedBuffer(KernelError):
    """A kernel would write a buffer that it also reads or writes through another binding."""


class MissingFeature(KernelError):
    """The device lacks a feature that the kernel needs."""


class CompileFailed(KernelError):
    """The driver's compiler refused a kernel."""


def load_manifest(folder: Path = FOLDER) -> dict:
    """Read manifest.json -> {kernel name: its entry}."""
    return json.loads((folder / "manifest.json").read_text("utf-8"))["kernels"]


def pack_params(declared: list, values: Mapping[str, float]) -> bytes:
    """Lay out a uniform struct: 4-byte scalars in the manifest's order, padded to 16 bytes."""
    words = [struct.pack("<I" if kind == "u32" else "<f", values[name]) for name, kind in declared]
    data = b"".join(words)
    return data + bytes(-len(data) % 16)


class Kernels:
    """The kernels on one device. `texts` may replace a file's text by name: the tests plant mistakes that way."""

    def __init__(self, device: Device, texts: Mapping[str, str] | None = None):
        self.device = device
        self.gpu = device.gpu
        self.manifest = load_manifest()
        self._texts = dict(texts or {})
        self._modules: dict = {}
        self._layouts: dict = {}
        self._pipelines: dict = {}
        self.images = Images(self.gpu)
        self.pool = Pool()
        self._none = self.buffer(16, label=NONE)

    # Buffers

    def buffer(self, size_bytes: int, label: str = "") -> wgpu.GPUBuffer:
        """Make a zeroed storage buffer of at least `size_bytes`, rounded up to 16."""
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        return self.gpu.create_buffer(label=label, size=max(16, (size_bytes + 15) // 16 * 16), usage=usage)

    def upload(self, array: np.ndarray, label: str = "") -> wgpu.GPUBuffer:
        """Copy an array's bytes into a new storage buffer."""
        data = np.ascontiguousarray(array)
        target = self.buffer(data.nbytes, label)
        self.write(target, data)
        return target

    def write(self, target: wgpu.GPUBuffer, array: np.ndarray, offset_bytes: int = 0) -> None:
        """Copy an array's bytes into a buffer; a last odd half-word is filled up with zeros."""
        data = np.ascontiguousarray(array).tobytes()
        if not data:
            return
        self.gpu.queue.write_buffer(target, offset_bytes, data + bytes(-len(data) % 4))

    def read(self, source: wgpu.GPUBuffer, dtype: str, shape: tuple[int, ...], offset_bytes: int = 0) -> np.ndarray:
        """Copy a buffer back as an array of `dtype` and `shape`; waits for everything submitted before."""
        count = int(np.prod(shape, dtype=np.int64))
        size = count * np.dtype(dtype).itemsize
        if size == 0:
            return np.empty(shape, dtype)
        data = self.gpu.queue.read_buffer(source, offset_bytes, (size + 3) // 4 * 4)
        return np.frombuffer(data, dtype, count).reshape(shape).copy()

    def fence(self) -> None:
        """Wait until everything submitted has run (wgpu-py 0.32 has no working wait: a small read is one)."""
        self.gpu.queue.read_buffer(self._none, 0, 16)

    # Dispatches

    def run(self, dispatches: Iterable[Dispatch], buffers: Mapping[str, wgpu.GPUBuffer]) -> None:
        """Encode dispatches in order as one pass and submit it; does not wait.

        Raises UnknownKernel, BadDispatch, MissingBuffer, AliasedBuffer or CompileFailed before anything is submitted.
        """
        dispatches = list(dispatches)
        if not dispatches:
            return
        pipelines = [self.pipeline(d.kernel, d.overrides) for d in dispatches]
        uniforms = self._uniforms(dispatches)
        encoder = self.gpu.create_command_encoder()
        run = encoder.begin_compute_pass()
        for i, (dispatch, pipeline) in enumerate(zip(dispatches, pipelines, strict=True)):
            run.set_pipeline(pipeline)
            run.set_bind_group(0, self._bind_group(dispatch, buffers, uniforms, i * UNIFORM_ALIGNMENT_BYTES))
            run.dispatch_workgroups(*dispatch.grid)
        run.end()
        self.gpu.queue.submit([encoder.finish()])

    def pipeline(self, kernel: str, overrides: Mapping[str, float]) -> wgpu.GPUComputePipeline:
        """Return the pipeline of a kernel with these overrides, compiled on first use."""
        if kernel not in self.manifest:
            raise UnknownKernel(f"There is no kernel {kernel!r}; the manifest has {', '.join(sorted(self.manifest))}.")
        key = (kernel, tuple(sorted(overrides.items())))
        if key not in self._pipelines:
            entry = self.manifest[kernel]
            _same_names(kernel, "overrides", overrides, entry["overrides"])
            if lacking := sorted(set(entry.get("needs", ())) - self.device.features):
                raise MissingFeature(
                    f"Kernel {kernel} needs {', '.join(lacking)}, which {self.device.words} lacks; "
                    "choose another variant (webgpu/variants.py)."
                )
            layout = self.gpu.create_pipeline_layout(bind_group_layouts=[self._layout(kernel)])
            constants = {name: float(value) for name, value in overrides.items()}
            try:
                self._pipelines[key] = self.gpu.create_compute_pipeline(
                    label=kernel,
                    layout=layout,
                    compute={
                        "module": self._module(kernel),
                        "entry_point": entry["entry"],
                        "constants": constants,
                    },
                )
            except wgpu.GPUError as error:
                raise CompileFailed(f"Kernel {kernel} ({entry['file']}) did not compile: {error.message}") from error
        return self._pipelines[key]

    def _module(self, kernel: str) -> wgpu.GPUShaderModule:
        file = self.manifest[kernel]["file"]
        if file not in self._modules:
            text = self._texts.get(file) or (FOLDER / file).read_text("utf-8")
            # The one text that a host adds: directives named by the manifest. naga knows subgroups without theirs.
            enable = [f"enable {name}; " for name in self.manifest[kernel].get("enable", ()) if name != "subgroups"]
            self._modules[file] = self.gpu.create_shader_module(label=file, code="".join(enable) + text)
        return self._modules[file]

    def _layout(self, kernel: str) -> wgpu.GPUBindGroupLayout:
        if kernel not in self._layouts:
            every = [{"buffer": {"type": "uniform"}}]
            every += [LAYOUTS[access] for _, access in self.manifest[kernel]["bindings"]]
            entries = [{"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, **how} for i, how in enumerate(every)]
            self._layouts[kernel] = self.gpu.create_bind_group_layout(label=kernel, entries=entries)
        return self._layouts[kernel]

    def _uniforms(self, dispatches: list[Dispatch]) -> wgpu.GPUBuffer:
        slices = []
        for dispatch in dispatches:
            declared = self.manifest[dispatch.kernel]["params"]
            _same_names(dispatch.kernel, "parameters", dispatch.params, [name for name, _ in declared])
            try:
                data = pack_params(declared, dispatch.params)
            except struct.error as error:
                raise BadDispatch(
                    f"Kernel {dispatch.kernel}: a parameter in {dispatch.params} does not fit ({error})."
                ) from error
            slices.append(data + bytes(UNIFORM_ALIGNMENT_BYTES - len(data)))
        return self.gpu.create_buffer_with_data(data=b"".join(slices), usage=wgpu.BufferUsage.UNIFORM)

    def _bind_group(self, dispatch: Dispatch, buffers: Mapping, uniforms: wgpu.GPUBuffer, offset: int):
        entry = self.manifest[dispatch.kernel]
        _same_names(dispatch.kernel, "bindings", dispatch.bindings, [name for name, _ in entry["bindings"]])
        size = (4 * len(entry["params"]) + 15) // 16 * 16
        entries = [{"binding": 0, "resource": {"buffer": uniforms, "offset": offset, "size": size}}]
        used: dict[str, str] = {}
        for i, (name, access) in enumerate(entry["bindings"]):
            target = dispatch.bindings[name]
            if access in IMAGE_LAYOUTS:
                entries.append({"binding": i + 1, "resource": self.images.resource(target)})
                continue
            if target != NONE and target in used and "read_write" in (access, used[target]):
                raise AliasedBuffer(
                    f"Kernel {dispatch.kernel} would write buffer {target!r} that it also reads; use two buffers."
                )
            used[target] = access
            whole, _, part = target.partition("@")  # "name" or "name@start+bytes", start a multiple of 256
            if whole != NONE and whole not in buffers:
                raise MissingBuffer(f"Kernel {dispatch.kernel} needs buffer {whole!r} for its binding {name!r}.")
            resource = self._none if whole == NONE else buffers[whole]
            start, size_bytes = (int(number) for number in part.split("+")) if part else (0, resource.size)
            entries.append({"binding": i + 1, "resource": {"buffer": resource, "offset": start, "size": size_bytes}})
        return self.gpu.create_bind_group(layout=self._layout(dispatch.kernel), entries=entries)


def _same_names(kernel: str, what: str, given: Iterable[str], declared: Iterable[str]) -> None:
    missing, extra = sorted(set(declared) - set(given)), sorted(set(given) - set(declared))
    if missing or extra:
        raise BadDispatch(
            f"Kernel {kernel}: {what} missing {missing}, unknown {extra}; the manifest declares {sorted(declared)}."
        )
