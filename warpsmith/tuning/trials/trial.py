"""One trial: launch gate, check, timing, on every workload the constraints allow."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from warpsmith.domain.job import Job, Metric, Workload
from warpsmith.domain.outcome import (
    CompileFacts,
    CutShort,
    Measured,
    Outcome,
    Rejected,
    Stage,
    TimeSummary,
    WorkloadTiming,
)
from warpsmith.domain.plan import Compiled, LaunchSize, TimingSamples
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.checks.extra_cases import check_further
from warpsmith.tuning.objective import objective_of
from warpsmith.tuning.session.device_session import Case, CheckedLaunch, DeviceSession
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.timing.energy import SILENT, launch_mj
from warpsmith.tuning.timing.paired_blocks import Side
from warpsmith.tuning.trials.energy_pruner import EnergyPruner
from warpsmith.tuning.trials.pruner import Estimate, Pruner

GIVE_UP_RATIO = 3.0
"""A configuration this many times slower than the baseline is timed with few samples only."""
HOPELESS_RATIO = 1.5
"""The same against the best configuration so far: its figure ranks it well enough."""

_CHILD_STAGES = {"timeout": "ran past its deadline", "signal": "crashed", "device": "faulted"}

Evaluate = Callable[[CheckedLaunch], "Future[float | Rejected]"]


@dataclass(frozen=True)
class _Part:
    """A workload of a trial."""

    workload: Workload
    checked: "Future[float | Rejected]"
    size: LaunchSize
    samples: TimingSamples | None = None
    timed: "Future[float | Rejected] | None" = None
    metered: "Future[float | Rejected] | None" = None
    energy_mj: float | None = None

    @property
    def is_refused(self) -> bool:
        """Whether it is known by now that the trial is rejected."""
        evaluated = [f for f in (self.checked, self.timed) if f is not None and f.done()]
        return any(isinstance(f.result(), Rejected) for f in evaluated)

    @property
    def summary(self) -> TimeSummary | None:
        """Of its samples; None where it was not timed."""
        return None if self.samples is None else summarise(self.samples.samples_us, self.samples.launches)


@dataclass
class TrialRun:
    """A trial that is done with the device; `settle` waits for the evaluation."""

    session: DeviceSession
    before: Mapping[str, float]
    """The baseline's cost by workload key."""
    facts: CompileFacts | None = None
    parts: list[_Part] = field(default_factory=list)
    ended: Rejected | None = None
    """Why it ended before every workload had its turn, other than by an evaluation."""
    estimate: Estimate | None = None
    """What was expected of it, where it looked hopeless."""
    skipped: tuple[str, ...] = ()
    """Keys of workloads that it did not run on for that."""

    def is_hopeless(self, pruner: Pruner, rest: Sequence[Workload]) -> bool:
        """Whether what was timed so far makes the other workloads a waste of time; remembers it."""
        if self.estimate is not None:
            return False
        return self._gives_up(pruner.estimate_if_hopeless(self._times_us(), [w.key for w in rest]), rest)

    def is_frugal_enough(self, energy_pruner: EnergyPruner) -> bool:
        """Whether its energy may be worth the runs that measure it; remembers it where not."""
        times_us = self._times_us()
        return not self._gives_up(
            energy_pruner.estimate_if_hopeless(times_us), [p.workload for p in self.parts]
        )

    def settle(self) -> Outcome:
        """What came of it.

        Raises:
            InvalidInput: the job's reference is of no use.
        """
        job, timings = self.session.job, []
        for part in self.parts:
            checked = part.checked.result()
            if isinstance(checked, Rejected):
                return checked.model_copy(update={"facts": self.facts})
            for evaluated in (part.timed, part.metered):
                found = None if evaluated is None else evaluated.result()
                if isinstance(found, Rejected):
                    return found.model_copy(update={"facts": self.facts})
            summary = part.summary
            if summary is None:
                continue
            too_fast = self.session.below_floor(part.workload, summary.median_us)
            if too_fast:
                return Rejected(
                    stage=Stage.FLOOR, reason=too_fast, workload=part.workload.key, facts=self.facts
                )
            times = {job.objective.cache.value: summary}
            key, energy_mj = part.workload.key, part.energy_mj
            timings.append(WorkloadTiming(workload=key, max_error=checked, energy_mj=energy_mj, **times))
        if self.ended is not None:
            return self.ended
        facts, in_order = self.facts or CompileFacts(), _as_in(job, timings)
        expected = None if self.estimate is None else self.estimate.objective
        if self.skipped and expected is not None:
            return CutShort(timings=in_order, skipped=self.skipped, facts=facts, estimate=expected)
        objective = objective_of(job, timings, self.before)
        return Measured(timings=in_order, facts=facts, objective=objective, expected=expected)

    def _times_us(self) -> dict[str, float]:
        return {p.workload.key: p.summary.median_us for p in self.parts if p.summary is not None}

    def _gives_up(self, estimate: Estimate | None, rest: Sequence[Workload]) -> bool:
        self.estimate = estimate
        if estimate is None or estimate.goes_on:
            return False
        self.skipped = tuple(w.key for w in rest)
        return True


def at_once(session: DeviceSession) -> Evaluate:
    """Evaluates in the caller's thread, so that a wrong kernel is not timed."""

    def evaluate(launch: CheckedLaunch) -> "Future[float | Rejected]":
        done: Future[float | Rejected] = Future()
        done.set_result(session.evaluate(launch))
        return done

    return evaluate


def run_trial(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    *,
    whole: bool = False,
    energy_pruner: EnergyPruner | None = None,
) -> Outcome:
    """`start_trial`, everything evaluated before the next step.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    evaluate = at_once(session)
    run = start_trial(
        session, template, kernel, compiled, baseline_us, evaluate, whole=whole, energy_pruner=energy_pruner
    )
    return run.settle()


def start_trial(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    evaluate: Evaluate,
    *,
    whole: bool = False,
    pruner: Pruner | None = None,
    energy_pruner: EnergyPruner | None = None,
) -> TrialRun:
    """Launch and time one configuration: all of a trial that needs the device.

    Args:
        baseline_us: the baseline's time by workload key, in the objective's cache state.
        evaluate: takes what was brought back; may answer later, while the device goes on.
        whole: compare every element of every output, not a sample.
        pruner: what the search has seen so far; without it, nothing is cut short.
        energy_pruner: the same of energies; for jobs that are about energy, and only these.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    assert (energy_pruner is None) == (session.job.objective.metric is Metric.TIME)
    run = TrialRun(session, baseline_us if energy_pruner is None else energy_pruner.before_mj)
    if isinstance(compiled, Rejected):
        run.ended = compiled
        return run
    run.facts = compiled.facts
    run.ended = session.refuse_binary(kernel, compiled)
    if run.ended is not None:
        return run
    try:
        allowed = session.allowed(template, kernel)
    except ExpressionError as exc:
        run.ended = Rejected(stage=Stage.SPACE, reason=exc.message, facts=compiled.facts)
        return run
    if not allowed:
        run.ended = Rejected(stage=Stage.SPACE, reason="no workload allows it", facts=compiled.facts)
        return run
    session.expect(case for w in allowed for case in (Case(w), session.other(w)))
    handle: int | None = None
    if pruner is not None:
        by_key = {w.key: w for w in allowed}
        allowed = [by_key[key] for key in pruner.order(list(by_key))]
    for place, workload in enumerate(allowed, 1):
        try:
            size = size_within_limits(kernel, workload, session.ports.opener.info)
            if isinstance(size, Rejected):
                run.ended = size.model_copy(update={"facts": compiled.facts})
                break
            device = session.device(workload)
            if handle is None:
                handle = device.load(compiled)
            best_us = None if pruner is None else pruner.best_us.get(workload.key)
            give_up = _give_up_above(baseline_us[workload.key], best_us)
            _run_part(run, handle, workload, size, evaluate, whole, give_up)
        except (ExpressionError, KernelRefused) as exc:
            run.ended = _rejected(Stage.LAUNCH, str(exc), workload, compiled)
            break
        except ChildDied as exc:
            session.renew(faulted=True)
            run.ended = _rejected(Stage.RUN, child_words(exc), workload, compiled)
            return run
        if run.parts[-1].is_refused or (pruner is not None and run.is_hopeless(pruner, allowed[place:])):
            break
    else:
        if energy_pruner is not None and handle is not None:
            try:
                _meter(run, handle, energy_pruner, evaluate)
            except ChildDied as exc:
                session.renew(faulted=True)
                reason = f"in a run for its energy: {child_words(exc)}"
                run.ended = _rejected(Stage.RUN, reason, allowed[0], compiled)
                return run
    if handle is not None:
        device.unload(handle)
    return run


def run_gate(
    session: DeviceSession,
    template: Template,
    kernel: ConfiguredKernel,
    compiled: Compiled | Rejected,
    baseline_us: Mapping[str, float],
    energy_pruner: EnergyPruner | None = None,
) -> Outcome:
    """The first trial of a template: every element, then other inputs and other shapes.

    Raises:
        InvalidInput: the job's reference is of no use.
    """
    outcome = run_trial(
        session, template, kernel, compiled, baseline_us, whole=True, energy_pruner=energy_pruner
    )
    if isinstance(outcome, Rejected) or isinstance(compiled, Rejected):
        return outcome
    allowed = session.allowed(template, kernel)
    try:
        found = check_further(session, template, kernel, compiled, allowed)
    except (ExpressionError, KernelRefused) as exc:
        return _rejected(Stage.LAUNCH, f"on other inputs or shapes: {exc}", allowed[0], compiled)
    except ChildDied as exc:
        session.renew(faulted=True)
        reason = f"on other inputs or shapes: {child_words(exc)}"
        return _rejected(Stage.RUN, reason, allowed[0], compiled)
    finally:
        session.forget_cases()
    return outcome if found is None else found.model_copy(update={"facts": compiled.facts})


def child_words(exc: ChildDied) -> str:
    """What became of a child, in the words of a reason."""
    words = _CHILD_STAGES.get(exc.cause, "ended the process that ran it")
    return f"{words}: {exc.detail}"


def _run_part(
    run: TrialRun,
    handle: int,
    workload: Workload,
    size: LaunchSize,
    evaluate: Evaluate,
    whole: bool,
    give_up_above_us: float,
) -> None:
    """A search trial is checked on the workload's own inputs or on others, by chance, and once timed."""
    session = run.session
    other = session.other(workload)
    own = whole or not session.defences.families or bool(secrets.randbits(1))
    launch = session.launch(handle, workload if own else other, size, whole=whole, repeat=whole)
    if not own:
        launch = replace(launch, words=f"with {other.family.value} inputs")
    part = _Part(workload, evaluate(launch), size)
    run.parts.append(part)
    if part.is_refused:
        return
    plan = replace(search_plan(session.job.objective.cache), give_up_above_us=give_up_above_us)
    samples, timed = session.sample(handle, workload, size, plan, other=other)
    run.parts[-1] = replace(part, samples=samples, timed=None if timed is None else evaluate(timed))


def _meter(run: TrialRun, handle: int, energy_pruner: EnergyPruner, evaluate: Evaluate) -> None:
    """Measure the energy of every workload, where the times promise enough."""
    counter = run.session.ports.energy
    # A run of the counter is long; whether the kernel is right is known sooner.
    refused = any(isinstance(p.checked.result(), Rejected) for p in run.parts)
    if refused or not run.is_frugal_enough(energy_pruner):
        return
    for place, part in enumerate(run.parts):
        assert part.summary is not None
        side = Side(run.session, part.workload, handle, part.size)
        # Another device of the class may have no counter.
        us = part.summary.median_us
        millijoules, launch = (None, None) if counter is None else launch_mj(side, counter, us)
        evaluated = None if launch is None else evaluate(launch)
        run.parts[place] = replace(part, energy_mj=millijoules, metered=evaluated)
        if millijoules is None:
            run.ended = Rejected(stage=Stage.TIMING, reason=SILENT, workload=part.workload.key)
            return


def _as_in(job: Job, timings: Sequence[WorkloadTiming]) -> tuple[WorkloadTiming, ...]:
    places = {w.key: place for place, w in enumerate(job.workloads)}
    return tuple(sorted(timings, key=lambda t: places[t.workload]))


def _give_up_above(baseline_us: float, best_us: float | None) -> float:
    limit = baseline_us * GIVE_UP_RATIO
    return limit if best_us is None else min(limit, best_us * HOPELESS_RATIO)


def _rejected(stage: Stage, reason: str, workload: Workload, compiled: Compiled) -> Rejected:
    return Rejected(stage=stage, reason=reason[:2000], workload=workload.key, facts=compiled.facts)
