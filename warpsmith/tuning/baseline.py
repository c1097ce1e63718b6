"""The user's kernel as it is: compiled, checked, timed, and timed against itself."""

import math
import time
from collections.abc import Sequence

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.job import KernelReference, Metric, Workload
from warpsmith.domain.outcome import Rejected, TimeSummary, WorkloadTiming
from warpsmith.domain.plan import Compiled, launch_size
from warpsmith.domain.template import ConfiguredKernel
from warpsmith.errors import ChildDied, ExpressionError, InvalidInput, KernelRefused
from warpsmith.measure.protocol import other_cache, search_plan, winner_blocks
from warpsmith.measure.statistics import speedup_interval, summarise
from warpsmith.tuning.checks.baseline_cases import check_case, family_cases, neighbour_cases, passing
from warpsmith.tuning.checks.baseline_time import SHARE, Thrift
from warpsmith.tuning.checks.reference_prefetch import Beforehand, beforehand, may_overlap
from warpsmith.tuning.checks.trivial_answers import untestable
from warpsmith.tuning.session.device_session import Bench
from warpsmith.tuning.session.launch_limits import launch_refusal
from warpsmith.tuning.session.mismatch_causes import UNWRITTEN
from warpsmith.tuning.session.session_ports import Case
from warpsmith.tuning.tasks import BaselineResult, CheckedCase
from warpsmith.tuning.timing.ceilings import ceilings_of
from warpsmith.tuning.timing.energy import counts_energy, metered
from warpsmith.tuning.timing.paired_blocks import Side, block_plan

AA_PAIRS = 10
"""Block pairs of the kernel against itself, on the first workload."""


def measure_baseline(bench: Bench) -> BaselineResult:
    """Check and time the user's kernel on every workload, cold and hot, and measure the noise.

    A kernel that fails is a result, not an error: `refused` says why the job cannot be tuned.
    """
    device = bench.tools.opener.info
    if bench.job.objective.metric is Metric.ENERGY and not counts_energy(bench.tools.energy):
        words = "objective.metric: this device does not report its energy (NVML, Volta or later); use time"
        return BaselineResult(device=device, refused=words)
    kernel = bench.user_template.configured(bench.job.space.defaults)
    compiled = bench.compile(kernel)
    if isinstance(compiled, Rejected):
        return BaselineResult(
            device=device, rejected=compiled, refused=f"the kernel does not compile: {compiled.reason}"
        )
    timings: list[WorkloadTiming] = []
    cases: list[CheckedCase] = []
    aa_width = 0.0
    where = ""
    own = isinstance(bench.job.reference, KernelReference)
    thrift = Thrift(bench.job.budget.seconds, len(bench.job.workloads), own)
    try:
        with beforehand(bench) as early:
            ahead: list[Case] = []
            for index, workload in enumerate(bench.job.workloads):
                where = workload.key
                asked = ahead or _cases(bench, workload)
                _, another, *families = asked
                failed = _expect(bench, asked if may_overlap(bench) else asked[:2], thrift)
                for key in (where, another.key):
                    if key in failed:
                        raise failed[key]
                ahead = _begin(bench, early, bench.job.workloads[index + 1 : index + 2])
                refusal = untestable(bench, workload, another)
                if refusal:
                    return _refused(device, timings, f"{where}: {refusal}")
                handle = bench.device(workload).load(compiled)
                timing = _measure(bench, early, kernel, handle, workload, cases, thrift)
                if isinstance(timing, Rejected):
                    return _refused(device, timings, f"{where}: the kernel fails: {timing.reason}", timing)
                timings.append(timing)
                if index == 0:
                    with early.quiet():
                        aa_width = _noise(bench, kernel, compiled, handle, workload, thrift)
                bench.device(workload).unload(handle)
                families = thrift.families(families)
                failed |= bench.expect(families)
                cases += passing(bench, kernel, compiled, [c for c in families if c.key not in failed])
                bench.forget_expected(workload)
                thrift.next_part()
    except InvalidInput as exc:
        return _refused(device, timings, str(exc))
    except ExpressionError as exc:
        return _refused(device, timings, f"{where}: {exc.message}")
    except KernelRefused as exc:
        return _refused(device, timings, f"{where}: the driver refused the launch: {exc}")
    except ChildDied as exc:
        bench.renew()
        return _refused(device, timings, f"{where}: the kernel ended its process: {exc}")
    cases += neighbour_cases(bench, kernel, compiled, thrift)
    bench.renew()
    keeps = "the kernel keeps {} between launches, so that a launch may depend on earlier ones"
    differs = (
        "two runs of the kernel on the same inputs differ, by up to {:.2g} tolerances; a tuned one's may"
    )
    apart = max((c.spread for c in cases), default=0.0)
    notes = [
        *_left_out(thrift),
        *(keeps.format(name) for name in compiled.globals),
        *([differs.format(apart)] if apart else []),
    ]
    return BaselineResult(
        device=device,
        timings=tuple(timings),
        facts=compiled.facts,
        aa_width=aa_width,
        cases=tuple(cases),
        globals=compiled.globals,
        notes=tuple(notes),
        ceilings=ceilings_of(bench.tools) if bench.defences.floor else None,
    )


def _refused(
    device: DeviceInfo, timings: Sequence[WorkloadTiming], words: str, rejected: Rejected | None = None
) -> BaselineResult:
    """A job that cannot be tuned, with what was measured of it before that was known."""
    return BaselineResult(device=device, timings=tuple(timings), rejected=rejected, refused=words)


def _cases(bench: Bench, workload: Workload) -> list[Case]:
    """Its own draw, another one, and families."""
    return [Case(workload), bench.another_draw(workload), *family_cases(bench, workload)]


def _expect(bench: Bench, cases: Sequence[Case], thrift: Thrift) -> dict[str, InvalidInput]:
    began = time.monotonic()
    failed = bench.expect(cases)
    thrift.reference_s = (time.monotonic() - began) / len(cases)
    return failed


def _left_out(thrift: Thrift) -> list[str]:
    """What a baseline with long launches left out, and the budget that would have had room for more."""
    if not thrift.left_out:
        return []
    words = f"{thrift.words}, and the baseline has a quarter of budget.seconds"
    if thrift.left_s < 0:
        taken_s = SHARE * thrift.budget_s - thrift.left_s
        words += f", {taken_s / SHARE:.0f} or more of which would have room for the least that it needs"
    return [f"{words}: {'; '.join(thrift.left_out)}"]


def _begin(bench: Bench, early: Beforehand, following: Sequence[Workload]) -> list[Case]:
    """Have the references of the next workload begun, where there is one; its cases, or none."""
    if not following or not may_overlap(bench):
        return []
    try:
        cases = _cases(bench, following[0])
        early.begin(bench, cases)
    except ExpressionError:
        return []  # it is said in its turn
    return cases


def _measure(
    bench: Bench,
    early: Beforehand,
    kernel: ConfiguredKernel,
    handle: int,
    workload: Workload,
    cases: list[CheckedCase],
    thrift: Thrift,
) -> WorkloadTiming | Rejected:
    size = launch_size(kernel, workload, bench.tools.opener.info)
    refusal = launch_refusal(size, bench.tools.opener.info)
    if refusal:
        raise KernelRefused(refusal)
    began = time.monotonic()
    checked = check_case(bench, handle, Case(workload), size)
    thrift.check_s = time.monotonic() - began
    if isinstance(checked, Rejected):
        if isinstance(bench.job.reference, KernelReference) and UNWRITTEN not in checked.reason:
            reason = f"two runs on the same inputs differ: {checked.reason}"
            return checked.model_copy(update={"reason": reason[:2000]})
        return checked
    cases.append(checked)
    child = bench.device(workload)
    times: dict[str, TimeSummary] = {}
    with early.quiet():
        cache = bench.job.objective.cache
        samples = child.time(handle, workload.key, size, thrift.plan(search_plan(cache)))
        times[cache.value] = summarise(samples.samples_us, samples.launches)
        thrift.timed(samples)
        thrift.checked()
        _refuse_endless(bench, thrift)
        if thrift.times_again(samples):
            other = other_cache(cache)
            again = child.time(handle, workload.key, size, thrift.plan(search_plan(other)))
            times[other.value] = summarise(again.samples_us, again.launches)
            thrift.timed(again)
        timing = WorkloadTiming(workload=workload.key, max_error=checked.max_error, **times)
        if bench.job.objective.metric is Metric.TIME:
            return timing
        return metered(Side(bench, workload, handle, size), timing)


def _refuse_endless(bench: Bench, thrift: Thrift) -> None:
    """Raises `InvalidInput` where the least that a baseline needs is more than the whole budget."""
    least_s = thrift.least_s(block_plan(bench.job.objective.cache))
    if least_s > thrift.budget_s:
        words = f"{thrift.words}, and a baseline about {least_s:.0f} s; raise it to"
        raise InvalidInput("budget.seconds", f"{words} {math.ceil(least_s / SHARE)}, or use smaller shapes")


def _noise(
    bench: Bench,
    kernel: ConfiguredKernel,
    compiled: Compiled,
    handle: int,
    workload: Workload,
    thrift: Thrift,
) -> float:
    """Half width of the interval of the kernel against itself, in this process and in another one."""
    size = launch_size(kernel, workload, bench.tools.opener.info)
    plan = block_plan(bench.job.objective.cache)
    second = Bench(bench.job, bench.tools, seed=bench.seed)
    try:
        child, other = bench.device(workload), second.device(workload)
        sides = {"A": (child, handle), "B": (other, other.load(compiled))}
        blocks: dict[str, list[tuple[float, ...]]] = {"A": [], "B": []}
        for side in winner_blocks(thrift.pairs(AA_PAIRS, plan), bench.seed):
            device, loaded = sides[side]
            blocks[side].append(device.time(loaded, workload.key, size, plan).samples_us)
    finally:
        second.close()
    interval = speedup_interval(blocks["A"], blocks["B"])
    return max(interval.high - 1.0, 1.0 - interval.low, 0.0)
