"""Probes a device with a kernel of the service's own whose result is known."""

import numpy as np

from warpsmith.domain.job import Workload
from warpsmith.domain.launch_size import expecting_launches, launch_size
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import plan_workload
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.measure.ceiling_kernels import copy_kernel
from warpsmith.tuning.session.session_ports import SessionPorts
from warpsmith.verify.inputs import draw_inputs

VECTORS = 1 << 16
"""Vectors of four floats to copy."""
ATTEMPTS = 2


def why_sick(ports: SessionPorts) -> str:
    """Description of the device's fault; empty if it copies a vector correctly.

    A device that fails once is tried again in a fresh process: the first may have met remains of another
    process.
    """
    words = ""
    for _ in range(ATTEMPTS):
        words = _probe(ports)
        if not words:
            return ""
    return words


def _probe(ports: SessionPorts) -> str:
    info = ports.opener.info
    kernel = ConfiguredKernel(kernel=copy_kernel(info.backend))
    workload = Workload(dimensions={"n": VECTORS})
    compiled = ports.compiler.submit(expecting_launches(kernel, [workload], info), info).result()
    if isinstance(compiled, Rejected):
        return f"our own kernel does not compile: {compiled.reason}"
    plan = plan_workload(kernel.kernel, workload, {}, seed=1)
    try:
        device = ports.opener.open()
    except ChildDied as exc:
        return f"it does not come up: {exc}"
    try:
        device.prepare(plan)
        report = device.run(device.load(compiled), plan.key, launch_size(kernel, workload, info))
    except (ChildDied, KernelRefused) as exc:
        return f"our own kernel fails: {exc}"
    finally:
        device.close()
    if report.guard_violations or not np.array_equal(report.outputs["y"], draw_inputs(plan)["x"]):
        return "our own kernel gives a wrong result"
    return ""
