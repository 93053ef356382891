"""The GPU as the playground asks for it: default limits, one error class per failure, words for people.

Only the limits that every WebGPU browser grants are requested, so that what passes here runs in every browser. Two
optional features are taken where the adapter has them, "subgroups" (quad operations too) and "f16": some kernels have
a variant that needs one (webgpu/variants.py). Nothing assumes a lane count; `lanes` is what the adapter reports.
Left out on purpose: any choice between several adapters; on Linux `VK_ICD_FILENAMES`, set before Python starts,
chooses the Vulkan driver.
"""

from __future__ import annotations

from dataclasses import dataclass

import wgpu

# WebGPU specification, section 3.6.2: the default value of each limit a compute kernel can meet.
DEFAULT_LIMITS = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 268_435_456,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16_384,
    "max-compute-workgroups-per-dimension": 65_535,
    "max-storage-buffer-binding-size": 134_217_728,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 65_536,
}
# Our name of a feature -> wgpu's. The page's host uses WebGPU's names.
FEATURES = {"subgroups": "subgroup", "f16": "shader-f16"}
SOFTWARE = {"llvmpipe": "llvmpipe", "swiftshader": "SwiftShader", "basic render": "Microsoft Basic Render Driver"}


class DeviceError(RuntimeError):
    """The kernels cannot run on this machine; the message says why and what to do."""


class NoAdapter(DeviceError):
    """No driver offers an adapter."""


class LimitTooSmall(DeviceError):
    """The adapter offers less than WebGPU's default limits."""


class DeviceRefused(DeviceError):
    """The driver has an adapter but would not open it."""


@dataclass(frozen=True)
class Device:
    """An open device: the wgpu.GPUDevice, its adapter's description and its name for people.

    features: those of FEATURES that it has; lanes: the fewest and most invocations of a subgroup, (0, 0) without.
    """

    gpu: wgpu.GPUDevice
    info: dict
    words: str
    features: frozenset[str] = frozenset()
    lanes: tuple[int, int] = (0, 0)

    @property
    def software(self) -> bool:
        """Whether a CPU stands in for a GPU."""
        return self.info["adapter_type"] == "CPU"


def describe(info: dict) -> str:
    """Name an adapter for people: `llvmpipe (a CPU stands in for a GPU)`, or the name of the card."""
    text = f"{info.get('vendor', '')} {info.get('device', '')}".lower()
    for word, name in SOFTWARE.items():
        if word in text:
            return f"{name} (a CPU stands in for a GPU)"
    name = info.get("device") or info.get("description") or "an unnamed adapter"
    return f"{name} (a CPU stands in for a GPU)" if info.get("adapter_type") == "CPU" else name


def request_device() -> Device:
    """Open the default adapter with WebGPU's default limits.

    Raises NoAdapter without a driver, LimitTooSmall when the adapter offers less than the defaults, and
    DeviceRefused when the driver fails to open it.
    """
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (RuntimeError, ValueError) as error:
        raise NoAdapter(_no_adapter(error)) from error
    if adapter is None:
        raise NoAdapter(_no_adapter("none found"))
    for name, wanted in DEFAULT_LIMITS.items():
        given = adapter.limits.get(name, wanted)
        if given < wanted:
            raise LimitTooSmall(
                f"{describe(dict(adapter.info))} offers {name} {given}; the kernels need WebGPU's default of {wanted}. "
                "Update the graphics driver, or choose another one with VK_ICD_FILENAMES."
            )
    features = frozenset(name for name, theirs in FEATURES.items() if theirs in adapter.features)
    try:
        gpu = adapter.request_device_sync(
            label="attention playground",
            required_features=[FEATURES[name] for name in sorted(features)],
            required_limits=DEFAULT_LIMITS,
        )
    except (RuntimeError, ValueError) as error:
        raise DeviceRefused(
            f"{describe(dict(adapter.info))} would not open ({error}). Close other programs that use the graphics "
            "card, or choose another driver with VK_ICD_FILENAMES."
        ) from error
    info = dict(adapter.info)
    lanes = _lanes(info) if "subgroups" in features else (0, 0)
    return Device(gpu, info, describe(info), features, lanes)


def _lanes(info: dict) -> tuple[int, int]:
    """Fewest and most lanes of a subgroup; wgpu-py 0.32 spells the first word of these two names differently."""
    fewest, most = (
        [value for key, value in info.items() if key.endswith(f"group_{end}_size")] for end in ("min", "max")
    )
    return (fewest[0], most[0]) if fewest and most else (0, 0)


def _no_adapter(reason: object) -> str:
    return (
        f"No Vulkan, Metal or Direct3D 12 adapter was found ({str(reason).splitlines()[0]}). "
        "On Debian and Ubuntu type: sudo apt-get install mesa-vulkan-drivers"
    )
