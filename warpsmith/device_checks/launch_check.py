"""Launches a job's kernel once, on its smallest workload, and says what a baseline would refuse."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job, NumpyReference
from warpsmith.domain.jobs.memory import buffer_bytes
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused, Unavailable
from warpsmith.job_files.finding import Finding
from warpsmith.settings import Settings

if TYPE_CHECKING:
    from warpsmith.tuning.session.device_session import DeviceSession

MOST_BYTES = 1 << 28
"""Bytes of all buffers up to which a kernel is launched here."""
NOT_LAUNCHED = "not launched"
_NAMED = re.compile(r"\bkernel\.(?:arguments|buffers)\.\d+\.\w+")


def launch_check(job: Job, device: DeviceInfo, settings: Settings) -> Iterator[Finding]:
    """Findings of one launch that is checked as a baseline's is; none if the kernel is right.

    A job whose smallest workload has more than `MOST_BYTES` is not launched, which is a finding of
    `NOT_LAUNCHED`.
    """
    from warpsmith.sandbox import ChildOpener, ReferenceRunner
    from warpsmith.sandbox.hosts.compile_host import CompilePool
    from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts

    try:
        sized = [(sum(buffer_bytes(job, w).values()), n) for n, w in enumerate(job.workloads)]
    except ExpressionError as exc:
        yield Finding(
            "workloads", f"{NOT_LAUNCHED}: a size is known on the device only: {exc}", is_error=False
        )
        return
    size_bytes, smallest = min(sized)
    if size_bytes > MOST_BYTES:
        words = f"its buffers have {size_bytes >> 20} MiB; at most {MOST_BYTES >> 20} are launched here"
        yield Finding("workloads", f"{NOT_LAUNCHED}: {words}", is_error=False)
        return
    alone = job.model_copy(update={"workloads": (job.workloads[smallest],)})
    with closing(CompilePool(1, settings.compile_timeout_s, settings.permitted_includes())) as pool:
        opener = ChildOpener(device, settings.run_timeout_s)
        session = DeviceSession(alone, SessionPorts(opener, pool, ReferenceRunner()))
        with closing(session):
            try:
                yield from _found(session)
            except InvalidInput as exc:
                yield Finding(exc.field, exc.message)
            except (ChildDied, ExpressionError, KernelRefused) as exc:
                yield Finding("kernel.launch", f"the kernel fails with {alone.workloads[0].key}: {exc}")
            except Unavailable as exc:
                yield Finding("kernel.backend", f"{NOT_LAUNCHED}: {exc}", is_error=False)


def _found(session: "DeviceSession") -> Iterator[Finding]:
    from warpsmith.tuning.checks.baseline_cases import check_case
    from warpsmith.tuning.checks.trivial_answers import untestable, written_in_part
    from warpsmith.tuning.execution.session_ports import Case
    from warpsmith.tuning.session.baseline_kernel import compiled_baseline
    from warpsmith.tuning.session.device_session import LoadedKernel
    from warpsmith.tuning.session.launch_limits import size_within_limits

    workload = session.job.workloads[0]
    refusal = untestable(session, workload, session.inputs.another_draw(workload))
    if refusal:
        named = _NAMED.search(refusal)
        yield Finding(named.group() if named else "kernel.arguments", f"{refusal} ({workload.key})")
        return
    kernel, compiled = compiled_baseline(session)
    size = size_within_limits(kernel, workload, session.info)
    if isinstance(size, Rejected):
        yield Finding("kernel.launch", size.reason)
        return
    loaded = LoadedKernel(session.device(workload).load(compiled), workload, size)
    checked = check_case(session, loaded, Case(workload))
    if isinstance(checked, Rejected):
        yield _refused(session.job, checked)
        return
    for note in written_in_part(session, workload):
        yield Finding("kernel.arguments", note, is_error=False)


def _refused(job: Job, checked: Rejected) -> Finding:
    """The finding for a launch that left something wrong."""
    from warpsmith.tuning.outputs.unwritten import UNWRITTEN

    words = f"{checked.reason} ({checked.workload})"
    if UNWRITTEN in checked.reason:
        step = "kernel.launches.0.launch.grid" if job.kernel.launches else "kernel.launch.grid"
        return Finding(step, f"{words}; does the grid have a block for each element?")
    own = not isinstance(job.reference, NumpyReference)
    return Finding("kernel" if own else "reference.source", f"the kernel and its reference differ: {words}")
