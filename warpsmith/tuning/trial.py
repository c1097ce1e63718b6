"""One trial: launch gate, check, timing, on every workload the constraints allow."""

import math
import secrets
from collections.abc import Mapping, Sequence

from warpsmith.domain.job import Job, Workload
from warpsmith.domain.outcome import Measured, Outcome, Rejected, Stage, TimeSummary, WorkloadTiming
from warpsmith.domain.plan import Compiled, LaunchSize, TimingPlan, launch_size
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.bench import Bench, Case, launch_refusal
from warpsmith.tuning.further import check_further

GIVE_UP_RATIO = 3.0
"""A configuration this many times slower than the baseline is timed with few samples only."""

_CHILD_STAGES = {"timeout": "ran past its deadline", "signal": "crashed", "device": "faulted"}


def run_trial(
    bench: Bench,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    *,
    whole: bool = False,
) -> Outcome:
    """Check and time one configuration.

    Args:
        baseline_us: the baseline's time by workload key, in the objective's cache state.
        whole: compare every element of every output, not a sample.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    if isinstance(compiled, Rejected):
        return compiled
    refused = bench.refuse_binary(kernel, compiled)
    if refused is not None:
        return refused
    try:
        allowed = bench.allowed(template, kernel)
    except ExpressionError as exc:
        return Rejected(stage=Stage.SPACE, reason=exc.message, facts=compiled.facts)
    if not allowed:
        return Rejected(stage=Stage.SPACE, reason="no workload allows it", facts=compiled.facts)
    bench.expect(case for w in allowed for case in (Case(w), bench.other(w)))
    timings: list[WorkloadTiming] = []
    handle: int | None = None
    for workload in allowed:
        try:
            size = launch_size(kernel, workload, bench.tools.opener.info)
            refusal = launch_refusal(size, bench.tools.opener.info)
            if refusal:
                return _rejected(Stage.LAUNCH, refusal, workload, compiled)
            device = bench.device(workload)
            if handle is None:
                handle = device.load(compiled)
            timed = _check_and_time(bench, handle, workload, size, baseline_us[workload.key], whole)
            if isinstance(timed, Rejected):
                device.unload(handle)
                return timed.model_copy(update={"facts": compiled.facts})
        except ExpressionError as exc:
            return _rejected(Stage.LAUNCH, exc.message, workload, compiled)
        except KernelRefused as exc:
            if handle is not None:
                device.unload(handle)
            return _rejected(Stage.LAUNCH, str(exc), workload, compiled)
        except ChildDied as exc:
            bench.renew()
            return _rejected(Stage.RUN, child_words(exc), workload, compiled)
        timings.append(timed)
    assert handle is not None
    device.unload(handle)
    objective = objective_of(bench.job, timings, baseline_us)
    return Measured(timings=tuple(timings), facts=compiled.facts, objective=objective)


def run_gate(
    bench: Bench,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
) -> Outcome:
    """The first trial of a template: every element, then other inputs and other shapes.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    outcome = run_trial(bench, template, kernel, compiled, baseline_us, whole=True)
    if isinstance(outcome, Rejected) or isinstance(compiled, Rejected):
        return outcome
    allowed = bench.allowed(template, kernel)
    try:
        found = check_further(bench, template, kernel, compiled, allowed)
    except (ExpressionError, KernelRefused) as exc:
        return _rejected(Stage.LAUNCH, f"on other inputs or shapes: {exc}", allowed[0], compiled)
    except ChildDied as exc:
        bench.renew()
        reason = f"on other inputs or shapes: {child_words(exc)}"
        return _rejected(Stage.RUN, reason, allowed[0], compiled)
    finally:
        bench.forget_cases()
    return outcome if found is None else found.model_copy(update={"facts": compiled.facts})


def child_words(exc: ChildDied) -> str:
    """What became of a child, in the words of a reason."""
    words = _CHILD_STAGES.get(exc.cause, "ended the process that ran it")
    return f"{words}: {exc.detail}"


def _check_and_time(
    bench: Bench, handle: int, workload: Workload, size: LaunchSize, baseline_us: float, whole: bool
) -> WorkloadTiming | Rejected:
    """A search trial is checked on the workload's own inputs or on others, by chance, and once timed."""
    other = bench.other(workload)
    own = whole or not bench.defences.families or bool(secrets.randbits(1))
    checked = bench.check(handle, workload if own else other, size, whole=whole, repeat=whole)
    if isinstance(checked, Rejected):
        if not own:
            reason = f"with {other.family.value} inputs: {checked.reason}"[:2000]
            checked = checked.model_copy(update={"reason": reason, "workload": workload.key})
        return checked
    samples, refused = bench.time(handle, workload, size, _timing_plan(bench.job, baseline_us), other=other)
    if refused is not None:
        return refused
    summary = summarise(samples.samples_us, samples.launches)
    too_fast = bench.below_floor(workload, summary.median_us)
    if too_fast:
        return Rejected(stage=Stage.FLOOR, reason=too_fast, workload=workload.key)
    return workload_timing(bench.job, workload, summary, checked)


def workload_timing(
    job: Job, workload: Workload, summary: TimeSummary, max_error: float | None
) -> WorkloadTiming:
    """The timing of a workload in the objective's cache state."""
    times = {job.objective.cache.value: summary}
    return WorkloadTiming(workload=workload.key, max_error=max_error, **times)


def time_us(job: Job, timing: WorkloadTiming) -> float | None:
    """The time that counts for the objective."""
    summary: TimeSummary | None = getattr(timing, job.objective.cache.value)
    return None if summary is None else summary.median_us


def objective_of(job: Job, timings: Sequence[WorkloadTiming], baseline_us: Mapping[str, float]) -> float:
    """Weighted geometric mean of time over baseline time; a workload not run keeps its baseline."""
    ratios = {t.workload: (time_us(job, t) or 0.0) / baseline_us[t.workload] for t in timings}
    total = sum(w.weight for w in job.workloads)
    logs = sum(w.weight * math.log(ratios.get(w.key) or 1.0) for w in job.workloads)
    return math.exp(logs / total)


def _timing_plan(job: Job, baseline_us: float) -> TimingPlan:
    plan = search_plan(job.objective.cache)
    return TimingPlan(
        cache=plan.cache,
        samples=plan.samples,
        launches=plan.launches,
        give_up_above_us=baseline_us * GIVE_UP_RATIO,
    )


def _rejected(stage: Stage, reason: str, workload: Workload, compiled: Compiled) -> Rejected:
    return Rejected(stage=stage, reason=reason[:2000], workload=workload.key, facts=compiled.facts)
