"""One job on one driver: dispatches, arrays in, arrays out, with every byte that is not data made poisonous.

    Wgpu         naga, on the machine's default driver (llvmpipe where there is no GPU), in this process
    SwiftShader  naga, on Chromium's CPU driver; in a child, because a Vulkan driver is chosen before wgpu starts
    Chromium     Tint, on the same driver, through the page's own host (static/gpu/kernels.js)

Inputs are followed by NaN (f16 and bf16 NaN too, and enormous ids); outputs and scratch begin as a NaN with a
recognisable payload, which has to be there still behind the last element when the job has run.
"""

from __future__ import annotations

import base64
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from webgpu.ops import Dispatch

ROOT = Path(__file__).resolve().parents[2]
GUARD_WORD = 0xFFC0DEAD  # a NaN as f32, as two f16 (0xFFC0 is one, 0xDEAD a number) and as an id out of every range
GUARD_BYTES = 256


@dataclass(frozen=True)
class Job:
    """inputs: name -> array; outputs: name -> (dtype, shape); scratch: name -> bytes; zeroed: outputs to clear."""

    dispatches: list[Dispatch]
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, tuple[str, tuple[int, ...]]]
    scratch: Mapping[str, int] = field(default_factory=dict)
    zeroed: tuple[str, ...] = ()

    def buffers(self) -> dict[str, bytes]:
        """Name -> the buffer's first contents."""
        filled = {name: _poisoned(array.tobytes()) for name, array in self.inputs.items()}
        sizes = {name: _bytes(*what) for name, what in self.outputs.items()} | dict(self.scratch)
        return filled | {
            name: _poisoned(bytes(size if name in self.zeroed else 0), size) for name, size in sizes.items()
        }

    def answers(self, contents: Mapping[str, bytes]) -> dict[str, np.ndarray]:
        """Check the guards of everything written and cut out the outputs."""
        first = self.buffers()
        sizes = {name: _bytes(*what) for name, what in self.outputs.items()} | dict(self.scratch)
        for name, size in sizes.items():
            assert contents[name][size:] == first[name][size:], f"{name} was written behind its last element"
        for name, array in self.inputs.items():
            assert contents[name] == first[name], f"{name} ({array.shape}) is an input and was written"
        return {
            name: np.frombuffer(contents[name], dtype, int(np.prod(shape))).reshape(shape)
            for name, (dtype, shape) in self.outputs.items()
        }


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return int(np.prod(shape)) * np.dtype(dtype).itemsize


def _poisoned(data: bytes, size: int = 0) -> bytes:
    data += b"\xff" * (-len(data) % 4)
    words = (max(len(data), size) + GUARD_BYTES + 15) // 16 * 4 - len(data) // 4
    return data + GUARD_WORD.to_bytes(4, "little") * words


class Wgpu:
    """The kernels through webgpu/kernels.py. texts: WGSL file name -> a text to use in its place."""

    def __init__(self, texts: Mapping[str, str] | None = None):
        from webgpu.device import request_device
        from webgpu.kernels import Kernels

        self.kernels = Kernels(request_device(), texts)
        self.words = self.kernels.device.words

    def run(self, job: Job) -> dict[str, np.ndarray]:
        """Run a job and return its outputs."""
        contents = job.buffers()
        buffers = {name: self.kernels.upload(np.frombuffer(data, "u1")) for name, data in contents.items()}
        self.kernels.run(job.dispatches, buffers)
        read = {name: self.kernels.read(buffers[name], "u1", (len(data),)).tobytes() for name, data in contents.items()}
        for buffer in buffers.values():
            buffer.destroy()
        return job.answers(read)


def swiftshader_icd() -> Path:
    """Find SwiftShader's driver description beside Chromium's program."""
    program = shutil.which("chromium") or shutil.which("google-chrome") or ""
    folders = [
        Path(program).resolve().parent,
        *map(Path, ("/usr/lib/chromium", "/opt/google/chrome", "/usr/lib64/chromium")),
    ]
    for folder in folders:
        if (folder / "vk_swiftshader_icd.json").exists():
            return folder / "vk_swiftshader_icd.json"
    raise FileNotFoundError("SwiftShader was not found beside Chromium. Type: sudo apt-get install chromium")


class SwiftShader:
    """A child process with SwiftShader as its only Vulkan driver; jobs and answers are pickled through its pipes."""

    def __init__(self):
        env = {**os.environ, "VK_ICD_FILENAMES": str(swiftshader_icd()), "PYTHONPATH": str(ROOT)}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.kernels.child"],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.words = self._receive()

    def _receive(self):
        kind, value = pickle.load(self.child.stdout)
        if kind == "error":
            raise AssertionError(value)
        return value

    def run(self, job: Job) -> dict[str, np.ndarray]:
        """Run a job in the child and return its outputs."""
        pickle.dump(job, self.child.stdin)
        self.child.stdin.flush()
        return self._receive()

    def close(self) -> None:
        """End the child."""
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


IN_PAGE = """async ({dispatches, contents}) => {
  const { requestDevice } = await import("/static/gpu/device.js");
  const { Kernels } = await import("/static/gpu/kernels.js");
  globalThis.kernels ??= await Kernels.load(await requestDevice());
  const { Buffers } = await import("/static/gpu/buffers.js");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const given = Object.entries(contents).map(([name, text]) => [name, bytes(text)]);
  const buffers = new Buffers(kernels, given.map(([name, { length }]) => [name, length]), false);
  buffers.write(Object.fromEntries(given));
  await kernels.run([], dispatches, buffers);
  const names = buffers.keys();
  const all = await buffers.read(names.map((name) => [name, buffers.get(name).size / 4]));
  buffers.destroy();
  const text = (bytes) => { let s = ""; for (let i = 0; i < bytes.length; i += 8192)
    s += String.fromCharCode(...bytes.subarray(i, i + 8192)); return btoa(s); };
  return { words: kernels.device.words, contents: names.map((name, i) => [name, text(new Uint8Array(all[i]))]) };
}"""


class Chromium:
    """The same bytes compiled by Tint, run by static/gpu/kernels.js in a page."""

    def __init__(self, ask):
        self.ask = ask

    def run(self, job: Job) -> dict[str, np.ndarray]:
        """Run a job in the page and return its outputs."""
        contents = {name: base64.b64encode(data).decode() for name, data in job.buffers().items()}
        dispatches = [vars(d) | {"grid": list(d.grid)} for d in job.dispatches]
        answer = self.ask(IN_PAGE, {"dispatches": dispatches, "contents": contents})
        self.words = answer["words"]
        return job.answers({name: base64.b64decode(text) for name, text in answer["contents"]})
