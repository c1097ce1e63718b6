"""Probes a device with a kernel of the service's own whose result is known."""

from contextlib import suppress

import numpy as np

from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import expecting_launches, launch_size
from warpsmith.domain.jobs.plan import plan_workload
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, DeviceSick, KernelRefused
from warpsmith.measure.ceiling_kernels import copy_kernel
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.ports import DevicePort
from warpsmith.verify.inputs import draw_inputs

VECTORS = 1 << 16
"""Vectors of four floats to copy."""
ATTEMPTS = 2


def open_well(ports: SessionPorts) -> DevicePort:
    """A fresh child in which a kernel of the service's own copied a vector.

    A device that fails once is tried again in another process: the first may have met remains of another
    process.

    Raises:
        DeviceSick: it failed again; says how.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(DeviceSick):
            return _opened(ports)
    return _opened(ports)


def _opened(ports: SessionPorts) -> DevicePort:
    info = ports.opener.info
    kernel = ConfiguredKernel(kernel=copy_kernel(info.backend))
    workload = Workload(dimensions={"n": VECTORS})
    compiled = ports.compiler.submit(expecting_launches(kernel, [workload], info), info).result()
    if isinstance(compiled, Rejected):
        raise DeviceSick(f"our own kernel does not compile: {compiled.reason}")
    plan = plan_workload(kernel.kernel, workload, {}, seed=1)
    try:
        device = ports.opener.open()
    except ChildDied as exc:
        raise DeviceSick(f"it does not come up: {exc}") from exc
    try:
        device.prepare(plan)
        handle = device.load(compiled)
        report = device.run(handle, plan.key, launch_size(kernel, workload, info))
        device.unload(handle)
        device.release(plan.key)
    except (ChildDied, KernelRefused) as exc:
        device.close()
        raise DeviceSick(f"our own kernel fails: {exc}") from exc
    if report.guard_violations or not np.array_equal(report.outputs["y"], draw_inputs(plan)["x"]):
        device.close()
        raise DeviceSick("our own kernel gives a wrong result")
    return device
