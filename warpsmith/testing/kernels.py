"""Kernels y = f(x) that behave well or badly in one known way, in the languages of the back ends."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import BufferPlan, ScalarPlan, WorkloadPlan
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.verify.inputs import draw_inputs

ENTRY = "f"
BLOCK = 64
ELEMENTS = 1001
"""No multiple of a block or of 16 bytes, so that the first element behind the end is not aligned."""
ARGUMENTS = [
    {"name": "x", "dtype": "float32", "role": "input", "shape": ["n"]},
    {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
    {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
]


class Behaviour(StrEnum):
    """Behaviour of a kernel that should write y = 2 x."""

    RIGHT = "right"
    """y = 2 x."""
    BROKEN = "broken"
    """Does not compile."""
    IDLE = "idle"
    """Writes nothing."""
    BEHIND_OUTPUT = "behind_output"
    """Right, and it writes behind the end of y."""
    CHANGES_INPUT = "changes_input"
    """Right, and it writes into x, which it may only read."""
    FAULTS = "faults"
    """Writes to an address that is not mapped."""
    HANGS = "hangs"
    """Never ends."""
    BEFORE_OUTPUT = "before_output"
    """Right, and it writes before the first element of y."""
    BEHIND_INPUT = "behind_input"
    """Right, and it writes behind the end of x."""
    NOT_FINITE = "not_finite"
    """NaN at odd places, an infinity at even ones."""
    IN_PLACE = "in_place"
    """y = 2 y + x."""


_SCALE = "y[i] = 2.0f * x[i];"
_BODIES: dict[Behaviour, str] = {
    Behaviour.RIGHT: _SCALE,
    Behaviour.BROKEN: "y[i] = no_such_name;",
    Behaviour.IDLE: "if (i < 0) y[i] = 1.0f;",
    Behaviour.BEHIND_OUTPUT: f"{_SCALE} if (i == 0) ((GLOBAL int*)y)[n] ^= 0x5a;",
    Behaviour.CHANGES_INPUT: f"{_SCALE} if (i == 0) ((GLOBAL int*)x)[0] ^= 1;",
    Behaviour.FAULTS: "((GLOBAL float*)16)[i] = 1.0f;",
    Behaviour.HANGS: "volatile int on = 1; while (on) y[i] += x[i];",
    Behaviour.BEFORE_OUTPUT: f"{_SCALE} if (i == 0) ((GLOBAL int*)y)[-1] ^= 0x5a;",
    Behaviour.BEHIND_INPUT: f"{_SCALE} if (i == 0) ((GLOBAL int*)x)[n] ^= 0x5a;",
    Behaviour.NOT_FINITE: "y[i] = i % 2 ? (x[i] - x[i]) / 0.0f : 1.0f / 0.0f;",
    Behaviour.IN_PLACE: "y[i] = 2.0f * y[i] + x[i];",
}


def source(backend: Backend, behaviour: Behaviour) -> str:
    """The text of a kernel `f` of x, y and n."""
    words = backend.language
    memory = words.global_word
    head = f"{words.kernel_head} f({memory}const float* x, {memory}float* y, const int n) {{"
    body = _BODIES[behaviour].replace("GLOBAL", memory.strip())
    return f"{head}\n  const int i = {words.global_index};\n  if (i >= n) return;\n  {body}\n}}\n"


def configured(backend: Backend, behaviour: Behaviour, entry: str = ENTRY) -> ConfiguredKernel:
    """Kernel of that source, without parameters."""
    fields = {
        "backend": backend,
        "source": source(backend, behaviour),
        "entry": entry,
        "arguments": ARGUMENTS,
        "launch": {"grid": [f"ceil_div(n, {BLOCK})"], "block": [BLOCK]},
    }
    return ConfiguredKernel(kernel=Kernel.model_validate(fields))


def plan(n: int = ELEMENTS, name: str = "w", seed: int = 5, role: Role = Role.OUTPUT) -> WorkloadPlan:
    """The arguments of such a kernel in numbers.

    Args:
        n: elements of x and of y, float32.
        name: of the workload.
        role: of y.
    """
    x = BufferPlan("x", Dtype.FLOAT32, Role.INPUT, (n,), None)
    y = BufferPlan("y", Dtype.FLOAT32, role, (n,), None)
    return WorkloadPlan(name, (x, y, ScalarPlan("n", Dtype.INT32, n)), seed)


def size(n: int = ELEMENTS) -> LaunchSize:
    """The launch that covers n elements."""
    return LaunchSize((-(-n // BLOCK), 1, 1), (BLOCK, 1, 1))


def doubled(of: WorkloadPlan) -> NDArray[np.float32]:
    """Output of a right kernel: twice the drawn x, which float32 holds exactly."""
    result: NDArray[np.float32] = np.float32(2.0) * draw_inputs(of)["x"].astype(np.float32)
    return result
