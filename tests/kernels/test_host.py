"""device.py and kernels.py: refusals name the kernel, with a control case; buffers round-trip; limits are defaults."""

import dataclasses

import numpy as np
import pytest

from tests.kernels.drivers import Wgpu
from webgpu import device, kernels, ops

pytestmark = pytest.mark.gpu


@pytest.fixture
def two(driver):
    """Two gates and what they let pass, and an empty buffer."""
    run = driver.kernels
    return {"a": run.upload(np.array([0, 100, 7, 3], "f4")), "c": run.buffer(8)}


GOOD = ops.swiglu("a", "c", T=1, F=2)
BAD = [
    (kernels.UnknownKernel, {"kernel": "subtract"}, "no kernel 'subtract'"),
    (kernels.BadDispatch, {"overrides": {"H": 4}}, "Kernel swiglu: overrides .*H"),
    (kernels.BadDispatch, {"params": {}}, "Kernel swiglu: parameters missing .*F"),
    (kernels.BadDispatch, {"params": {"T": 1, "F": -1}}, "Kernel swiglu: a parameter"),
    (kernels.BadDispatch, {"bindings": {"gate_up": "a"}}, "Kernel swiglu: bindings missing .*out"),
    (kernels.MissingBuffer, {"bindings": {"gate_up": "x", "out": "c"}}, "Kernel swiglu needs buffer 'x'"),
    (kernels.AliasedBuffer, {"bindings": {"gate_up": "a", "out": "a"}}, "Kernel swiglu would write buffer 'a'"),
]


def test_run_good_dispatch_computes(driver, two):
    driver.kernels.run([GOOD], two)
    assert np.array_equal(driver.kernels.read(two["c"], "f4", (2,)), [0, 300])


@pytest.mark.parametrize(("error", "changed", "words"), BAD)
def test_run_bad_dispatch_is_refused_by_name(driver, two, error, changed, words):
    with pytest.raises(error, match=words):
        driver.kernels.run([GOOD, dataclasses.replace(GOOD, **changed)], two)


def test_run_nothing_is_fine(driver):
    driver.kernels.run([], {})
    driver.kernels.fence()


def test_pipeline_bad_text_names_the_kernel():
    broken = Wgpu({"swiglu.wgsl": "fn main() { this is not WGSL }"}).kernels
    with pytest.raises(kernels.CompileFailed, match=r"Kernel swiglu \(swiglu.wgsl\)"):
        broken.pipeline("swiglu", {})


@pytest.mark.parametrize("dtype", ["u1", "u2", "f2", "u4", "f4"])
@pytest.mark.parametrize("count", [0, 1, 3, 16, 33])
def test_buffers_round_trip(driver, dtype, count):
    array = (np.arange(count) % 250).astype(dtype)
    buffer = driver.kernels.upload(array)
    assert buffer.size % 16 == 0 and buffer.size >= 16
    assert np.array_equal(driver.kernels.read(buffer, dtype, (count,)), array)


def test_device_asks_for_default_limits_only(driver):
    limits = driver.kernels.gpu.limits
    for name, value in device.DEFAULT_LIMITS.items():
        if not name.startswith("max-buffer"):
            assert limits[name] == value, name


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (
            {"vendor": "llvmpipe", "device": "llvmpipe (LLVM 15)", "adapter_type": "CPU"},
            "llvmpipe (a CPU stands in for a GPU)",
        ),
        (
            {"vendor": "SwiftShader driver", "device": "SwiftShader Device (Subzero)", "adapter_type": "CPU"},
            "SwiftShader (a CPU stands in for a GPU)",
        ),
        ({"vendor": "NVIDIA", "device": "NVIDIA H200", "adapter_type": "DiscreteGPU"}, "NVIDIA H200"),
        ({"device": "", "description": "", "adapter_type": "IntegratedGPU"}, "an unnamed adapter"),
    ],
)
def test_describe_names_adapters_for_people(info, words):
    assert device.describe(info) == words


class Adapter:
    """An adapter that offers little, or refuses to open."""

    info = {"vendor": "llvmpipe", "device": "llvmpipe", "adapter_type": "CPU"}  # noqa: RUF012
    features = frozenset()

    def __init__(self, limits: dict):
        self.limits = limits

    def request_device_sync(self, **_):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("adapter", "error", "words"),
    [
        (None, device.NoAdapter, "apt-get install mesa-vulkan-drivers"),
        (Adapter({"max-compute-workgroup-storage-size": 8192}), device.LimitTooSmall, "storage-size 8192.*16384"),
        (Adapter({}), device.DeviceRefused, "would not open"),
    ],
)
def test_request_device_failure_says_what_to_do(monkeypatch, adapter, error, words):
    monkeypatch.setattr(device.wgpu.gpu, "request_adapter_sync", lambda **_: adapter)
    with pytest.raises(error, match=words):
        device.request_device()
