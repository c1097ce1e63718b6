"""A slice: one worker runs trials of one candidate until its lease, its budget or the space ends."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.domain.jobs.job import Job, Metric
from warpsmith.domain.state import SliceEnd
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage, told
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import RuleFault, Template
from warpsmith.system.progress_marker import PROGRESS
from warpsmith.tuning.objective import steady_times_us, time_us
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.ports import Searcher, TrialSink
from warpsmith.tuning.session.device_session import CheckedLaunch, DeviceSession
from warpsmith.tuning.tasks import BaselineResult, SliceResult
from warpsmith.tuning.timing.drift import DriftWatch, corrected
from warpsmith.tuning.trials.energy_pruner import EnergyPruner
from warpsmith.tuning.trials.first_trial import at_once, run_gate
from warpsmith.tuning.trials.pipeline import Pending, SliceLimits, TrialPipeline
from warpsmith.tuning.trials.pruner import Pruner, evenly
from warpsmith.tuning.trials.rule_faults import rules_at_fault
from warpsmith.tuning.trials.trial import Evaluate, Trial, TrialContext

__all__ = ["SliceLimits", "SliceStart", "run_slice"]

NO_ENERGY = "the baseline was measured without its energy; submit the job again"


@dataclass(frozen=True)
class SliceStart:
    """State of the candidate when a slice begins."""

    gate: bool = True
    """The template is new: its default configuration is checked whole before anything else, and a failure
    rejects the candidate."""
    earlier: Sequence[Measured] = ()
    """Outcomes of the candidate's earlier slices: how workloads, and energy and time, relate."""
    include_dirs: Mapping[str, Path] = field(default_factory=dict)
    """Permitted include folders by name, as the template was made with."""
    best: float | None = None
    """The best objective of the job so far; None: nothing was measured yet."""
    leftover: Sequence[Configuration] = ()
    """Configurations that run first and are not proposed anew."""


def run_slice(
    session: DeviceSession,
    template: Template,
    baseline: BaselineResult,
    searcher: Searcher,
    sink: TrialSink,
    limits: SliceLimits,
    start: SliceStart | None = None,
) -> SliceResult:
    """Run trials and report each to the searcher and the sink.

    While the device runs one trial, the one before it is evaluated and told, and those after it are proposed
    and compiled. If kernels run on the host's own cores nothing overlaps: all of that would be timed.

    Raises:
        InvalidInput: the job's reference cannot be used.
    """
    start = start or SliceStart()
    session.baseline.learn(baseline)
    if session.job.objective.metric is Metric.ENERGY and not has_energy(baseline):
        return SliceResult(ended_by=SliceEnd.REJECTED, reason=NO_ENERGY)
    pruner, energy_pruner = _pruners(session.job, baseline, start.earlier)
    times = _times_us(session.job, baseline)
    pipeline = TrialPipeline(session, template, searcher, sink, limits, list(start.leftover))
    drift = DriftWatch(session, times, start.best)
    slice_ = _Slice(session, template, searcher, sink, limits, times, drift, pruner, energy_pruner)
    for outcome in start.earlier:
        slice_.learn(outcome)
    if start.gate:
        rejected = slice_.gate(pipeline)
        if rejected is not None:
            return slice_.rejected(rejected, start.include_dirs)
        session.renew()
    with ExitStack() as threads:
        lane: Executor = _Here()
        evaluate = at_once(session)
        if not session.info.shares_host:
            lane = threads.enter_context(ThreadPoolExecutor(1, thread_name_prefix="device"))
            evaluate = _elsewhere(
                session, threads.enter_context(ThreadPoolExecutor(1, thread_name_prefix="evaluate"))
            )
            # A child ends with the thread that opened it: leave none that looks alive.
            threads.callback(lambda: lane.submit(session.renew).result())
        return slice_.search(lane, evaluate, pipeline)


def _times_us(job: Job, baseline: BaselineResult) -> dict[str, float]:
    return {t.workload: time_us(job, t) or 0.0 for t in baseline.timings}


def has_energy(baseline: BaselineResult) -> bool:
    """True if the energy of the user's kernel was measured on every workload."""
    return all(t.energy_mj is not None for t in baseline.timings)


def _pruners(
    job: Job, baseline: BaselineResult, earlier: Sequence[Measured]
) -> tuple[Pruner, EnergyPruner | None]:
    """The pruner of times, and that of energies if the objective is energy."""
    baseline_us = _times_us(job, baseline)
    weights = {w.key: w.weight for w in job.workloads}
    # Slices that all began with the same number would favour it.
    draw = evenly(hash((job.seed, earlier[-1].objective)) if earlier else job.seed)
    if job.objective.metric is not Metric.ENERGY:
        return Pruner(weights, baseline_us, job.budget.stop_early, draw), None
    before = {t.workload: (baseline_us[t.workload], t.energy_mj or 0.0) for t in baseline.timings}
    # If energy counts, timings are the cheap part of a trial: none is cut short.
    pruner = Pruner(weights, baseline_us, False, draw)
    return pruner, EnergyPruner(weights, before, job.budget.stop_early, draw)


@dataclass(frozen=True)
class FinishedRun:
    """A trial that is done with the device."""

    trial: Trial
    seconds: float
    """On the device."""
    drifts: Mapping[str, float]
    """Drift of the device during the trial, as ratios of times by workload key."""


@dataclass
class _Running:
    """A trial that is or was on the device."""

    pending: Pending
    finished: "Future[FinishedRun]"


_Confirm = Callable[[Outcome, Pending], Outcome]
_Start = Callable[[Pending], "Future[FinishedRun]"]


@dataclass
class _Slice:
    session: DeviceSession
    template: Template
    searcher: Searcher
    sink: TrialSink
    limits: SliceLimits
    baseline_us: Mapping[str, float]
    drift: DriftWatch
    pruner: Pruner
    energy_pruner: EnergyPruner | None = None
    done: int = 0
    refusal: str = ""
    """Reason of the first rejection; empty if no configuration was rejected."""
    spoilt: bool = False
    """True if the child must be replaced before the next trial."""
    started: float = field(default_factory=time.monotonic)

    def gate(self, pipeline: TrialPipeline) -> Rejected | None:
        """Run the first trial of a template; returns its rejection, or None."""
        configuration = self.template.space.defaults
        PROGRESS.at("search: first trial of a template")
        began = time.monotonic()
        self.sink.proposed([configuration])
        kernel = self.template.configured(configuration)
        compiling = self.session.submit(kernel)
        self.drift.prepare(kernel, compiling)
        pipeline.begin(configuration)
        compiled = compiling.result()
        outcome: Outcome = run_gate(
            self.session, self.template, kernel, compiled, self.baseline_us, self.energy_pruner
        )
        if isinstance(outcome, Measured):
            outcome = corrected(self.session.job, outcome, self.drift.drifts())
            outcome = self.drift.confirmed(outcome, kernel, compiled)
        self.finish(configuration, outcome, time.monotonic() - began)
        return outcome if isinstance(outcome, Rejected) else None

    def faults(self, rejected: Rejected, include_dirs: Mapping[str, Path]) -> tuple[RuleFault, ...]:
        """The rules for which the template fails, if the device can tell; these runs are no trials."""
        session = self.session

        def probe(template: Template, configuration: Configuration) -> Rejected | None:
            kernel = template.configured(configuration)
            compiled = session.compile(kernel)
            if isinstance(compiled, Rejected) or rejected.stage is Stage.COMPILE:
                # What compiles and is wrong nevertheless is found with the next template.
                return compiled if isinstance(compiled, Rejected) else None
            outcome = run_gate(session, template, kernel, compiled, self.baseline_us, self.energy_pruner)
            return outcome if isinstance(outcome, Rejected) else None

        seconds = self.limits.seconds
        return rules_at_fault(
            session.job,
            template=self.template,
            first=rejected,
            probe=probe,
            include_dirs=include_dirs,
            seconds=seconds,
        )

    def search(self, lane: Executor, evaluate: Evaluate, pipeline: TrialPipeline) -> SliceResult:
        """Overlap trials: one on the device, one in evaluation, the others with the compilers."""
        self.drift.prepare()
        overlaps = not isinstance(lane, _Here)
        context = TrialContext(
            self.session, self.baseline_us, evaluate, pruner=self.pruner, energy_pruner=self.energy_pruner
        )

        def start(pending: Pending) -> "Future[FinishedRun]":
            PROGRESS.at(f"search: trial {self.done + 1} of {self.limits.trials}")
            return lane.submit(self._run, pending, context)

        def confirm(outcome: Outcome, pending: Pending) -> Outcome:
            kernel, compiled = pending.kernel, pending.compiled.result()
            return lane.submit(self.drift.confirmed, outcome, kernel, compiled).result()

        running: _Running | None = None
        exhausted = False
        while True:
            if not self.sink.alive():
                return self.result(self._end(False))
            pending = None
            room = self.limits.trials - self.done - (running is not None)
            if room > 0 and time.monotonic() - self.started < self.limits.seconds:
                pending = pipeline.next(room, waits=running is None)
                exhausted = pending is None and pipeline.is_empty
            before, running = running, None
            if pending is not None:
                running = _Running(pending, start(pending))
            if not overlaps:
                before, running = running, None
            if before is None and running is None:
                return self.result(self._end(exhausted))
            if before is not None:
                pipeline.device_s(self._collect(before, running, start, confirm))

    def finish(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        """Tell searcher, pruners and sink."""
        self.searcher.tell(configuration, told(outcome))
        self.sink.finished(configuration, outcome, seconds)
        self.done += 1
        if isinstance(outcome, Measured):
            self.learn(outcome)
        elif isinstance(outcome, Rejected) and not self.refusal:
            self.refusal = str(outcome)

    def learn(self, outcome: Measured) -> None:
        """Let the pruners learn from an outcome; of energies, unless the device drifted."""
        self.drift.learn(outcome)
        times_us = steady_times_us(self.session.job, outcome)
        self.pruner.learn(times_us)
        if self.energy_pruner is not None and outcome.drift == 1.0:
            self.energy_pruner.learn(
                {t.workload: (times_us[t.workload], t.energy_mj or 0.0) for t in outcome.timings}
            )

    def rejected(self, why: Rejected, include_dirs: Mapping[str, Path]) -> SliceResult:
        """The result if the template failed its first trial; looks for the rules at fault."""
        faults = self.faults(why, include_dirs)
        return SliceResult(
            trials=self.done,
            seconds=time.monotonic() - self.started,
            ended_by=SliceEnd.REJECTED,
            reason=str(why),
            faults=faults,
        )

    def result(self, ended_by: SliceEnd) -> SliceResult:
        """Result of the slice, for the task."""
        seconds = time.monotonic() - self.started
        return SliceResult(trials=self.done, seconds=seconds, ended_by=ended_by, refusal=self.refusal)

    def _end(self, exhausted: bool) -> SliceEnd:
        """Cause of the end. `exhausted`: the searcher proposed nothing more."""
        end = SliceEnd.EXHAUSTED if exhausted else SliceEnd.LIMIT
        return self.searcher.cut_off or end

    def _run(self, pending: Pending, context: TrialContext) -> FinishedRun:
        """In the thread of the device."""
        compiled = pending.compiled.result()
        if self.spoilt:
            self.spoilt = False
            self.session.renew()
        drifts = self.drift.drifts()
        self.pruner.steady = self.drift.is_steady
        began = time.monotonic()
        trial = Trial(self.template, pending.kernel, compiled, context)
        trial.run()
        seconds = time.monotonic() - began
        return FinishedRun(trial, seconds, drifts)

    def _collect(self, running: _Running, after: _Running | None, start: _Start, confirm: _Confirm) -> float:
        """Settle a trial and report it; returns its seconds on the device.

        Args:
            after: the trial that runs, or ran, after it in the same child.
            start: runs a trial on the device.
            confirm: times an apparent best again there.
        """
        run = running.finished.result()
        outcome = corrected(self.session.job, run.trial.settle(), run.drifts)
        if isinstance(outcome, Rejected) and outcome.stage is Stage.GUARD:
            # It wrote outside its buffers, which may be why what ran after it in this child failed.
            failed = after is not None and isinstance(after.finished.result().trial.settle(), Rejected)
            self.spoilt = True
            if after is not None and failed:
                after.finished = start(after.pending)
        outcome = confirm(outcome, running.pending)
        self.finish(running.pending.configuration, outcome, run.seconds)
        return run.seconds


class _Here(Executor):
    """Executor that runs each call at once in the caller's thread."""

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        """See `Executor.submit`; raises what `fn` raises."""
        done: Future[object] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def _elsewhere(session: DeviceSession, threads: Executor) -> Evaluate:
    def evaluate(launch: CheckedLaunch) -> "Future[CheckResult]":
        return threads.submit(session.checker.evaluate, launch)

    return evaluate
