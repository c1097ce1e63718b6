"""Kernels y = f(x) in both languages, and what the tests of this folder do with them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.deadlines import HANGS_S, comes_true
from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import BufferPlan, Compiled, ScalarPlan, WorkloadPlan
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.sandbox import CompilePool
from warpsmith.sandbox.hosts.device_host import ChildDevice
from warpsmith.testing.jobs import DEVICE
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import Array

CUDA_DEVICE = DEVICE.model_copy(update={"backend": Backend.CUDA, "architecture": "sm_90", "name": "H200"})
ARGUMENTS = [
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]
BLOCK = 64
SCALE = "y[i] = 2.0f * x[i];"


def source(backend: Backend, body: str, before: str = "") -> str:
    """A kernel `f` whose body sees x, y, n and, for i below n, runs `body` once."""
    if backend.language.has_cuda_words:
        head = 'extern "C" __global__ void f(const float* x, float* y, const int n) {\n'
        index = "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    else:
        head = "__kernel void f(__global const float* x, __global float* y, const int n) {\n"
        index = "  const int i = get_global_id(0);\n"
    return f"{before}\n{head}{index}  if (i >= n) return;\n  {body}\n}}\n"


def kernel(backend: Backend, text: str, **fields: Any) -> ConfiguredKernel:
    """`text` as a configured kernel with entry `f`."""
    launch = {"grid": [f"ceil_div(n, {BLOCK})"], "block": [BLOCK]}
    values = {"backend": backend, "source": text, "entry": "f", "arguments": ARGUMENTS, "launch": launch}
    return ConfiguredKernel(kernel=Kernel.model_validate(values | fields))


def compiled(pool: CompilePool, device: DeviceInfo, text: str, **fields: Any) -> Compiled | Rejected:
    """What the pool makes of `text`."""
    return pool.submit(kernel(device.backend, text, **fields), device).result(HANGS_S)


def rejected(pool: CompilePool, device: DeviceInfo, text: str, **fields: Any) -> Rejected:
    """The same, for a source that must not compile."""
    result = compiled(pool, device, text, **fields)
    assert isinstance(result, Rejected), "it compiled"
    return result


def built(pool: CompilePool, device: DeviceInfo, text: str, **fields: Any) -> Compiled:
    """The same, for a source that must compile."""
    result = compiled(pool, device, text, **fields)
    assert isinstance(result, Compiled), f"{result.reason}\n{result.log}"
    return result


def plan(n: int, dtype: Dtype = Dtype.FLOAT32, key: str = "w", seed: int = 5) -> WorkloadPlan:
    """Arguments x, y, n in numbers."""
    x = BufferPlan("x", dtype, Role.INPUT, (n,), None)
    y = BufferPlan("y", dtype, Role.OUTPUT, (n,), None)
    return WorkloadPlan(key, (x, y, ScalarPlan("n", Dtype.INT32, n)), seed)


def size(n: int) -> LaunchSize:
    """The launch that covers n elements."""
    return LaunchSize((-(-n // BLOCK), 1, 1), (BLOCK, 1, 1))


def expected(of: WorkloadPlan, factor: float = 2.0) -> NDArray[np.float64]:
    """What a scaling kernel must write."""
    return factor * draw_inputs(of)["x"].astype(np.float64)


def floats(found: Array) -> NDArray[np.float32]:
    """An array that must be of that type."""
    assert found.dtype == np.float32
    return found.astype(np.float32, copy=False)


def updated(of: WorkloadPlan) -> NDArray[np.float32]:
    """What y = 2 y + x must write."""
    drawn = draw_inputs(of)
    return floats(drawn["y"]) * 2 + floats(drawn["x"])


def pid_of(child: ChildDevice) -> int:
    """The process that drives the device."""
    return child._process._process.pid


def group_of(leader: int) -> list[int]:
    """Living processes of a process group, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(group) == leader and state != "Z":
            found.append(int(entry.name))
    return found


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that another process does."""
    assert comes_true(true, seconds), "it did not happen in time"


def may_read_environ_of(pid: int) -> bytes | None:
    """The environment of a process as the system shows it; None where it is refused."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        assert os.geteuid() != 0
        return None
