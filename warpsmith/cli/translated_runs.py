"""A CUDA job and its translation to HIP, run on the same inputs of an NVIDIA device."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpsmith.cli.launch_check import MOST_BYTES
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import Job, Workload
from warpsmith.domain.memory import buffer_bytes
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused, Unavailable
from warpsmith.settings import Settings
from warpsmith.verify.compare import same_bits
from warpsmith.verify.run_report import Array, RunReport

if TYPE_CHECKING:
    from warpsmith.tuning.session.device_session import Case, DeviceSession, LoadedKernel


@dataclass(frozen=True)
class TranslatedRuns:
    """What running both brought."""

    workloads: int = 0
    """Number of workloads on which both agree."""
    further: int = 0
    """Number of further inputs and shapes on which they do."""
    problem: str = ""
    """How they differ; empty if they agree."""
    not_run: str = ""
    """Why nothing was compared; empty otherwise."""


@dataclass(frozen=True)
class _Side:
    kernel: ConfiguredKernel
    compiled: Compiled


def run_both(cuda: Job, hip: Job, exact: bool, device: DeviceInfo, settings: Settings) -> TranslatedRuns:
    """Launch both on every workload that is not too large, and on further inputs and shapes like a baseline.

    Args:
        exact: outputs must be equal to the last bit; False: within the job's tolerances.
    """
    from warpsmith.sandbox import ChildOpener, ReferenceRunner
    from warpsmith.sandbox.compile_host import CompilePool
    from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts

    try:
        sizes = {w.key: sum(buffer_bytes(cuda, w).values()) for w in cuda.workloads}
    except ExpressionError as exc:
        return TranslatedRuns(not_run=f"a size is known on the device only: {exc}")
    small = tuple(w for w in cuda.workloads if sizes[w.key] <= MOST_BYTES)
    if not small:
        words = (
            f"its buffers have {min(sizes.values()) >> 20} MiB; at most {MOST_BYTES >> 20} are launched here"
        )
        return TranslatedRuns(not_run=words)
    cuda, hip = (job.model_copy(update={"workloads": small}) for job in (cuda, hip))
    with closing(CompilePool(2, settings.compile_timeout_s, settings.permitted_includes())) as pool:
        opener = ChildOpener(device, settings.run_timeout_s)
        with closing(DeviceSession(cuda, SessionPorts(opener, pool, ReferenceRunner()))) as session:
            try:
                return _compared(session, hip, exact)
            except (InvalidInput, ChildDied, ExpressionError, KernelRefused) as exc:
                return TranslatedRuns(problem=str(exc))
            except Unavailable as exc:
                return TranslatedRuns(not_run=str(exc))


def _compared(session: "DeviceSession", hip: Job, exact: bool) -> TranslatedRuns:
    from warpsmith.tuning.session.baseline_kernel import compiled_baseline

    first = _Side(*compiled_baseline(session))
    kernel = Template(kernel=hip.kernel, space=hip.space).configured(hip.space.defaults)
    compiled = session.compile(kernel)
    if isinstance(compiled, Rejected):
        return TranslatedRuns(problem=f"the translation does not compile: {compiled.reason}")
    sides = (first, _Side(kernel, compiled))
    for workload in session.job.workloads:
        for case in session.inputs.own_draws(workload):
            problem = _differ(session, sides, case, exact)
            if problem:
                return TranslatedRuns(problem=f"{workload.key}: {problem}")
    count = 0
    for case in _further(session, first):
        problem = _differ(session, sides, case, exact)
        if problem:
            return TranslatedRuns(problem=f"{case.key}: {problem}")
        count += 1
    return TranslatedRuns(len(session.job.workloads), count)


def _further(session: "DeviceSession", first: _Side) -> Iterator["Case"]:
    """Families of inputs, and other shapes, on which the CUDA kernel is right."""
    from warpsmith.tuning.checks.baseline_cases import family_cases, neighbour_cases, passing
    from warpsmith.tuning.checks.baseline_time import BaselineTime
    from warpsmith.tuning.checks.faulty_shapes import FaultyShapes
    from warpsmith.tuning.session.session_ports import Case

    job = session.job
    faulty = FaultyShapes([w.dimensions for w in job.workloads])
    time_left = BaselineTime(job.budget.seconds, len(job.workloads), own=True)
    right = []
    for workload in job.workloads:
        families = family_cases(session, workload)
        failed = session.expected.compute(families)
        usable = [c for c in families if c.key not in failed]
        right += passing(session, first.kernel, first.compiled, usable, faulty)
    right += neighbour_cases(session, first.kernel, first.compiled, time_left, faulty)
    for found in right:
        yield Case(Workload(dimensions=found.dimensions), found.family)


def _differ(session: "DeviceSession", sides: tuple[_Side, _Side], case: "Case", exact: bool) -> str:
    """How the two kernels differ on a case; empty if they do not."""
    from warpsmith.tuning.checks.baseline_cases import check_case

    reports = []
    for name, side in zip(("the CUDA kernel", "the translation"), sides, strict=True):
        loaded = _loaded(session, side, case)
        if isinstance(loaded, Rejected):
            return f"{name}: {loaded.reason}"
        plan = session.inputs.plan(case)
        if not exact:
            checked = check_case(session, loaded, case)
            if isinstance(checked, Rejected):
                return f"{name}: {checked.reason}"
        else:
            reports.append(session.device(case).run(loaded.handle, plan.key, loaded.size))
        session.device(case).unload(loaded.handle)
    session.release(case)
    return unequal(*reports) if exact else ""


def _loaded(session: "DeviceSession", side: _Side, case: "Case") -> "LoadedKernel | Rejected":
    from warpsmith.tuning.session.device_session import LoadedKernel
    from warpsmith.tuning.session.launch_limits import size_within_limits

    size = size_within_limits(side.kernel, case.workload, session.info)
    if isinstance(size, Rejected):
        return size
    return LoadedKernel(session.device(case).load(side.compiled), case.workload, size)


def unequal(cuda: RunReport, hip: RunReport) -> str:
    """How the outputs of two launches differ; empty if all that was written is equal to the last bit."""
    if cuda.guard_violations != hip.guard_violations:
        return f"one of them writes outside {', '.join({*cuda.guard_violations, *hip.guard_violations})}"
    for name, want in cuda.outputs.items():
        got = hip.outputs[name]
        if same_bits(got, want):
            continue
        apart = np.flatnonzero(_bytes(got) != _bytes(want))
        own = _is_poison(cuda, name, want, apart) & _is_poison(hip, name, got, apart)
        if not own.all():
            first = int(apart[~own][0]) // want.dtype.itemsize
            left = f"{want.flat[first]} in CUDA, {got.flat[first]} in HIP"
            return f"{name} differs, first in element {first}: {left}"
    return ""


def _bytes(values: Array) -> Array:
    return values.view(np.uint8)


def _is_poison(report: RunReport, name: str, values: Array, places: Array) -> "np.typing.NDArray[np.bool_]":
    """Which bytes are what an output held before the launch."""
    poison = np.frombuffer(report.poison.get(name, b""), dtype=np.uint8)
    if not poison.size:
        return np.zeros(places.shape, dtype=bool)
    return np.asarray(_bytes(values)[places] == poison[places % poison.size], dtype=bool)
