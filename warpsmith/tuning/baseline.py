"""The user's kernel as it is: compiled, checked, timed, and timed against itself."""

import itertools
import math
import time
from collections.abc import Sequence
from contextlib import suppress

from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import CacheState, KernelReference, Metric, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import CaseKey, Compiled, TimingSamples
from warpsmith.domain.templates.outcome import Rejected, TimeSummary, WorkloadTiming
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.job_checks.all_findings import launch_warnings
from warpsmith.job_checks.parameters import unmet_constraints
from warpsmith.measure.protocol import other_cache, search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.checks.baseline_cases import (
    check_case,
    edge_cases,
    family_cases,
    neighbour_cases,
    passing,
)
from warpsmith.tuning.checks.baseline_time import SHARE, BaselineTime
from warpsmith.tuning.checks.faulty_shapes import FaultyShapes
from warpsmith.tuning.checks.reference_prefetch import ReferencePrefetch, may_overlap, prefetch_references
from warpsmith.tuning.checks.trivial_answers import (
    counted_in_part,
    nothing_counts,
    untestable,
    written_in_part,
)
from warpsmith.tuning.execution.session_ports import Case
from warpsmith.tuning.outputs.binary_checks import persistent_variables
from warpsmith.tuning.outputs.unwritten import UNWRITTEN
from warpsmith.tuning.own_noise import OwnNoise
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.tasks import BaselineResult, CheckedCase
from warpsmith.tuning.timing.ceilings import ceilings_of, ceilings_s
from warpsmith.tuning.timing.energy import counts_energy, metered
from warpsmith.tuning.timing.paired_blocks import TimedSide, block_plan

DISTURBED = 0.7
"""Share of the least time to write all outputs below which the ceilings were measured on a busy device: some
kernels write a little faster than the copy by which it is measured."""
_FAULTS = "the kernel ended its process on a shape as odd as {} others, which were not tried"


def measure_baseline(session: DeviceSession) -> BaselineResult:
    """Check and time the user's kernel on every workload, cold and hot, and measure the noise.

    A kernel that fails is a result, not an error: `refused` says why the job cannot be tuned.
    """
    device = session.info
    if session.job.objective.metric is Metric.ENERGY and not counts_energy(session.ports.energy):
        words = "objective.metric: this device does not report its energy (NVML, Volta or later); use time"
        return BaselineResult(device=device, refused=words)
    for unmet in unmet_constraints(session.job, device.scope()):
        return BaselineResult(device=device, refused=str(unmet))
    return _Baseline(session).run()


class _Baseline:
    """Measurement of one session's baseline: compiles when made, `run` does the rest."""

    def __init__(self, session: DeviceSession) -> None:
        self._session, job = session, session.job
        self._kernel = session.inputs.user_template.configured(job.space.defaults)
        self._compiling = session.submit(self._kernel)
        self._timings: list[WorkloadTiming] = []
        self._cases: list[CheckedCase] = []
        self._in_part: list[str] = []
        """Notes on outputs of which not every element counts, or is written."""
        self._faulty = FaultyShapes([w.dimensions for w in job.workloads])
        self._where = ""
        """Key of the workload that is measured."""
        own = isinstance(job.reference, KernelReference)
        reserved_s = ceilings_s(session.ports) if session.inputs.defences.floor else 0.0
        self._time_left = BaselineTime(job.budget.seconds, len(job.workloads), own, reserved_s)
        self._ahead: dict[str, list[Case]] = {}
        """Cases by workload whose references are computed ahead; empty if nothing may overlap."""

    def run(self) -> BaselineResult:
        """Measure every workload, then try other shapes and edge cases."""
        session, time_left = self._session, self._time_left
        try:
            with prefetch_references(session) as prefetch, OwnNoise(session, prefetch, time_left) as noise:
                compiled = self._compiled(prefetch)
                if isinstance(compiled, Rejected):
                    return self._refused(f"the kernel does not compile: {compiled.reason}", compiled)
                for index in range(len(session.job.workloads)):
                    refused = self._measure(index, compiled, prefetch, noise)
                    if refused is not None:
                        return refused
        except InvalidInput as exc:
            return self._refused(str(exc))
        except ExpressionError as exc:
            return self._refused(f"{self._where}: {exc.message}")
        except KernelRefused as exc:
            return self._refused(f"{self._where}: the driver refused the launch: {exc}")
        except ChildDied as exc:
            session.renew()
            return self._refused(f"{self._where}: the kernel ended its process: {exc}")
        for further in (neighbour_cases, edge_cases):
            self._cases += further(session, self._kernel, compiled, time_left, self._faulty)
        session.renew()
        return self._result(compiled, noise)

    def _compiled(self, prefetch: ReferencePrefetch) -> Compiled | Rejected:
        """The kernel's binary; the device and the references get ready while the compiler works."""
        session = self._session
        session.expected.rehearse()
        self._ahead = _start_prefetch(session, prefetch)
        first = session.job.workloads[0]
        self._where = first.key
        session.device(first)
        return self._compiling.result()

    def _measure(
        self, index: int, compiled: Compiled, prefetch: ReferencePrefetch, noise: OwnNoise
    ) -> BaselineResult | None:
        """Check and time one workload, and try its input families; returns a result if it cannot be tuned."""
        session, workload = self._session, self._session.job.workloads[index]
        self._where = workload.key
        self._refuse_overrun(index)
        draws, families, failed = self._expect(workload)
        refusal = nothing_counts(session, workload) or _untestable(session, workload, draws)
        if refusal:
            return self._refused(f"{self._where}: {refusal}")
        handle = session.device(workload).load(compiled)
        timing = self._check_and_time(handle, workload, prefetch)
        if isinstance(timing, Rejected):
            return self._refused(f"{self._where}: the kernel fails: {timing.reason}", timing)
        self._timings.append(timing)
        self._in_part += [*counted_in_part(session, workload), *written_in_part(session, workload)]
        size = launch_size(self._kernel, workload, session.info)
        noise.measure(compiled, LoadedKernel(handle, workload, size))
        session.device(workload).unload(handle)
        self._try_families(compiled, families, failed)
        session.expected.forget(workload)
        self._time_left.next_part()
        return None

    def _refuse_overrun(self, index: int) -> None:
        """Begin a workload; raise `InvalidInput` if those before it took longer than the whole job may."""
        workloads = self._session.job.workloads
        PROGRESS.at(f"baseline: {workloads[index].key}")
        if index and self._time_left.is_over:
            words = f"the baseline of {index} of {len(workloads)} workloads took longer; raise it, or list"
            raise InvalidInput("budget.seconds", f"{words} fewer workloads")

    def _expect(self, workload: Workload) -> tuple[Sequence[Case], list[Case], dict[CaseKey, InvalidInput]]:
        """Compute references of a workload; returns its own draws, its families, and cases that failed.

        Raises:
            InvalidInput: the reference of an own draw cannot be used.
        """
        session = self._session
        asked = self._ahead.get(workload.key) or _cases(session, workload)
        draws = session.inputs.own_draws(workload)
        computed = asked if may_overlap(session) else draws
        began = time.monotonic()
        failed = session.expected.compute(computed)
        self._time_left.reference_s = (time.monotonic() - began) / len(computed)
        for case in draws:
            if case.key in failed:
                raise failed[case.key]
        return draws, asked[len(draws) :], failed

    def _check_and_time(
        self, handle: int, workload: Workload, prefetch: ReferencePrefetch
    ) -> WorkloadTiming | Rejected:
        session, time_left = self._session, self._time_left
        size = size_within_limits(self._kernel, workload, session.info)
        if isinstance(size, Rejected):
            raise KernelRefused(size.reason)
        began = time.monotonic()
        loaded = LoadedKernel(handle, workload, size)
        checked = check_case(session, loaded, Case(workload))
        time_left.check_s = time.monotonic() - began
        if isinstance(checked, Rejected):
            if isinstance(session.job.reference, KernelReference) and UNWRITTEN not in checked.reason:
                reason = f"two runs on the same inputs differ: {checked.reason}"
                return checked.model_copy(update={"reason": reason[:2000]})
            return checked
        self._cases.append(checked)
        times: dict[str, TimeSummary] = {}
        session.expected.rehearsed()
        with prefetch.paused():
            cache = session.job.objective.cache
            samples = self._timed(loaded, cache)
            times[cache.value] = summarise(samples.samples_us, samples.launches)
            time_left.checked()
            _refuse_endless(session, time_left)
            if time_left.times_again(samples):
                other = other_cache(cache)
                again = self._timed(loaded, other)
                times[other.value] = summarise(again.samples_us, again.launches)
            timing = WorkloadTiming(workload=workload.key, max_error=checked.max_error, **times)
            if session.job.objective.metric is Metric.TIME:
                return timing
            return metered(TimedSide(session, loaded), timing)

    def _timed(self, loaded: LoadedKernel, cache: CacheState) -> TimingSamples:
        began = time.monotonic()
        samples = self._session.sampler.time(loaded, self._time_left.plan(search_plan(cache)))
        self._time_left.timed(samples, time.monotonic() - began)
        return samples

    def _try_families(
        self, compiled: Compiled, families: Sequence[Case], failed: dict[CaseKey, InvalidInput]
    ) -> None:
        """Check the kernel on other inputs of the workload, as many as there is time for."""
        session, time_left = self._session, self._time_left
        chosen = [] if time_left.is_over else time_left.families(families)
        failed |= session.expected.compute(chosen)
        right = time_left.until_over(c for c in chosen if c.key not in failed)
        self._cases += passing(session, self._kernel, compiled, right, self._faulty)

    def _result(self, compiled: Compiled, noise: OwnNoise) -> BaselineResult:
        """The result of a kernel that can be tuned."""
        session, notes = self._session, _notes(self._session, self._kernel, compiled, self._cases)
        return BaselineResult(
            device=session.info,
            timings=tuple(self._timings),
            facts=compiled.facts,
            aa_width=max(noise.widths.values(), default=0.0),
            aa_widths=noise.widths,
            cases=tuple(self._cases),
            globals=compiled.globals,
            telling=compiled.telling,
            notes=(*self._in_part, *notes, *_left_out(self._time_left, self._faulty)),
            faulted=tuple(self._faulty.known),
            ceilings=_ceilings(session, self._timings) if session.inputs.defences.floor else None,
        )

    def _refused(self, words: str, rejected: Rejected | None = None) -> BaselineResult:
        """The result for a job that cannot be tuned, with the measurements made before that was known."""
        device, timings = self._session.info, tuple(self._timings)
        return BaselineResult(device=device, timings=timings, rejected=rejected, refused=words)


def _untestable(session: DeviceSession, workload: Workload, draws: Sequence[Case]) -> str:
    """See `untestable`; NumPy has the last word on what the outputs are."""
    words = untestable(session, workload, *draws[1:])
    if words:
        told = [session.expected.judged_by_numpy(case) for case in draws]
        words = untestable(session, workload, *draws[1:]) if any(told) else words
    return words


def _ceilings(session: DeviceSession, timings: Sequence[WorkloadTiming]) -> Ceilings | None:
    """Ceilings of the device; kept ones are measured again if the user's kernel writes faster than they
    allow."""

    def hold(found: Ceilings) -> bool:
        floors = (session.sampler.floor_with(found, w) for w in session.job.workloads)
        shortest = [min(s.median_us for s in (t.cold, t.hot) if s is not None) for t in timings]
        return all(us >= DISTURBED * floor.written_us for us, floor in zip(shortest, floors, strict=True))

    return ceilings_of(session.ports, hold)


def _cases(session: DeviceSession, workload: Workload) -> list[Case]:
    """Cases of a workload: its own draws, and families."""
    return [*session.inputs.own_draws(workload), *family_cases(session, workload)]


def _notes(
    session: DeviceSession, kernel: ConfiguredKernel, compiled: Compiled, cases: Sequence[CheckedCase]
) -> list[str]:
    """Notes on properties of the kernel that weaken the checks of its job."""
    keeps = "the kernel keeps {} between launches, so that a launch may depend on earlier ones"
    differs = (
        "two runs of the kernel on the same inputs differ, by up to {:.2g} tolerances; a tuned one's may"
    )
    apart = max((c.spread for c in cases), default=0.0)
    missed = {n: share for c in cases for n, share in c.missed.items()}
    steps = (
        "the kernel rounds some elements of {0} to another integer than float64 does; a tuned one may miss"
    )
    return [
        *map(str, launch_warnings(session.job, session.info.scope())),
        *(keeps.format(name) for name in persistent_variables(kernel, compiled)),
        *([differs.format(apart)] if apart else []),
        *(f"{steps.format(n)} {share:.1g} of them by 1" for n, share in sorted(missed.items())),
    ]


def _left_out(time_left: BaselineTime, faulty: FaultyShapes) -> list[str]:
    """Notes on checks that were left out: of a baseline with long launches, and the budget that would allow
    them; and on shapes on which the kernel would probably end its process."""
    faults = [_FAULTS.format(faulty.left_out)] if faulty.left_out else []
    if not time_left.left_out:
        return faults
    words = f"{time_left.words}, and the baseline has a quarter of budget.seconds"
    if time_left.left_s < 0:
        taken_s = SHARE * time_left.budget_s - time_left.left_s
        words += f", {taken_s / SHARE:.0f} or more of which would have room for the least that it needs"
    return [*faults, f"{words}: {'; '.join(time_left.left_out)}"]


def _start_prefetch(session: DeviceSession, prefetch: ReferencePrefetch) -> dict[str, list[Case]]:
    """Start computing the references of all workloads, in order; returns their cases by workload."""
    cases: dict[str, list[Case]] = {}
    if not may_overlap(session):
        return cases
    with suppress(ExpressionError):  # it is said in its turn
        for workload in session.job.workloads:
            cases[workload.key] = _cases(session, workload)
    prefetch.start(session, itertools.chain.from_iterable(cases.values()))
    return cases


def _refuse_endless(session: DeviceSession, time_left: BaselineTime) -> None:
    """Raise `InvalidInput` if the least time of a baseline exceeds the whole budget."""
    least_s = time_left.least_s(block_plan(session.job.objective.cache))
    if least_s > time_left.budget_s:
        words = f"{time_left.words}, and a baseline about {least_s:.0f} s; raise it to"
        raise InvalidInput("budget.seconds", f"{words} {math.ceil(least_s / SHARE)}, or use smaller shapes")
