"""Runs a trial: launch gate, check and timing on every workload that the constraints allow."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from warpsmith.domain.jobs.job import Job, Metric, Workload
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, TimingSamples
from warpsmith.domain.templates.outcome import (
    CompileFacts,
    CutShort,
    Measured,
    Outcome,
    Rejected,
    Stage,
    TimeSummary,
    WorkloadTiming,
)
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.tuning.objective import objective_of
from warpsmith.tuning.outputs.output_checks import CheckResult
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.device_session import Case, CheckedLaunch, DeviceSession, LoadedKernel
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.timing.energy import SILENT, launch_mj
from warpsmith.tuning.timing.paired_blocks import TimedSide
from warpsmith.tuning.trials.energy_pruner import EnergyPruner
from warpsmith.tuning.trials.pruner import Estimate, Pruner

GIVE_UP_RATIO = 3.0
"""Slowness relative to the baseline above which a configuration is timed with few samples only."""
HOPELESS_RATIO = 1.5
"""Slowness relative to the best configuration so far above which few samples suffice to rank it."""

_CHILD_STAGES = {"timeout": "ran past its deadline", "signal": "crashed", "device": "faulted"}

Evaluate = Callable[[CheckedLaunch], "Future[CheckResult]"]


@dataclass(frozen=True)
class _Part:
    """Part of a trial: one workload."""

    workload: Workload
    checked: "Future[CheckResult]"
    size: LaunchSize
    samples: TimingSamples | None = None
    timed: "Future[CheckResult] | None" = None
    metered: "Future[CheckResult] | None" = None
    energy_mj: float | None = None

    @property
    def is_refused(self) -> bool:
        """True if the trial is known to be rejected."""
        evaluated = [f for f in (self.checked, self.timed) if f is not None and f.done()]
        return any(isinstance(f.result(), Rejected) for f in evaluated)

    @property
    def summary(self) -> TimeSummary | None:
        """Summary of its samples; None if it was not timed."""
        return None if self.samples is None else summarise(self.samples.samples_us, self.samples.launches)


@dataclass(frozen=True)
class TrialContext:
    """Session, baseline and pruners that all trials of a slice share."""

    session: DeviceSession
    baseline_us: Mapping[str, float]
    """The baseline's time by workload key, in the objective's cache state."""
    evaluate: Evaluate
    """Compares what was brought back; may answer later, while the device goes on."""
    whole: bool = False
    """Compare every element of every output, not a sample."""
    pruner: Pruner | None = None
    """Trials finished so far; None disables pruning."""
    energy_pruner: EnergyPruner | None = None
    """Energies of finished trials; given exactly for jobs whose objective is energy."""

    def __post_init__(self) -> None:
        assert (self.energy_pruner is None) == (self.session.job.objective.metric is Metric.TIME)

    @property
    def before(self) -> Mapping[str, float]:
        """The baseline's cost by workload key: microseconds, or millijoules if the objective is energy."""
        return self.baseline_us if self.energy_pruner is None else self.energy_pruner.before_mj

    def give_up_above_us(self, workload: Workload) -> float:
        """The time above which a few samples of a workload are enough."""
        limit = self.baseline_us[workload.key] * GIVE_UP_RATIO
        best_us = None if self.pruner is None else self.pruner.best_us.get(workload.key)
        return limit if best_us is None else min(limit, best_us * HOPELESS_RATIO)


class Trial:
    """Trial of one configuration: `run` does all that needs the device, `settle` waits for the evaluation."""

    def __init__(
        self,
        template: Template,
        kernel: ConfiguredKernel,
        compiled: Compiled | Rejected,
        context: TrialContext,
    ) -> None:
        self._template = template
        self._kernel = kernel
        self._compiled = compiled
        self._context = context
        self._session = context.session
        self._facts = compiled.facts if isinstance(compiled, Compiled) else None
        self._allowed: Sequence[Workload] = ()
        """Workloads that the template's constraints allow with this configuration."""
        self._device: DevicePort | None = None
        self._handle: int | None = None
        """The binary on the device."""
        self._parts: list[_Part] = []
        self._ended: Rejected | None = None
        """Reason why it ended before its last workload, other than by an evaluation."""
        self._estimate: Estimate | None = None
        """Predicted objective, if the configuration looked hopeless."""
        self._skipped: tuple[str, ...] = ()
        """Keys of the workloads that were skipped because it looked hopeless."""

    def run(self) -> None:
        """Launch, check and time the configuration on every workload.

        Raises:
            InvalidInput: the job's reference cannot be used.
        """
        self._ended = self.refuse() or self._run_allowed()
        if self._device is not None and self._handle is not None:
            self._device.unload(self._handle)

    def refuse(self) -> Rejected | None:
        """Rejection before any launch; None: the configuration may run."""
        if isinstance(self._compiled, Rejected):
            return self._compiled
        refused = self._session.checker.binary_refusal(self._kernel, self._compiled)
        if refused is not None:
            return refused
        # Triton's compiler says what a block needs; the launch of the job does not.
        shared = self._compiled.facts.static_shared_bytes or 0
        most = self._session.info.limits.max_shared_per_block
        if shared > most:
            reason = f"{shared} B of shared memory; a block may have {most}"
            return Rejected(stage=Stage.LAUNCH, reason=reason, facts=self._facts)
        try:
            self._allowed = self._session.inputs.allowed(self._template, self._kernel)
        except ExpressionError as exc:
            return Rejected(stage=Stage.SPACE, reason=exc.message, facts=self._facts)
        if not self._allowed:
            return Rejected(stage=Stage.SPACE, reason="no workload allows it", facts=self._facts)
        return None

    def run_workload(self, workload: Workload) -> Rejected | None:
        """Check and time it on a workload; returns why it cannot run there, or None."""
        info = self._session.info
        try:
            size = size_within_limits(self._kernel, workload, info)
            if isinstance(size, Rejected):
                return size.model_copy(update={"facts": self._facts})
            self._load(workload)
            self._check_and_time(workload, size)
        except (ExpressionError, KernelRefused) as exc:
            return self.rejected(Stage.LAUNCH, str(exc), workload)
        except ChildDied as exc:
            return self._died(exc, workload)
        return None

    def meter(self) -> Rejected | None:
        """Measure the energy of every workload, if the times promise enough.

        Returns why the energy cannot be measured, or None.
        """
        if not self._is_worth_metering():
            return None
        try:
            for place, part in enumerate(self._parts):
                self._parts[place] = metered = self._metered(part)
                if metered.energy_mj is None:
                    return Rejected(stage=Stage.TIMING, reason=SILENT, workload=part.workload.key)
        except ChildDied as exc:
            return self._died(exc, self._parts[0].workload, "in a run for its energy: ")
        return None

    def settle(self) -> Outcome:
        """The outcome of the trial.

        Raises:
            InvalidInput: the job's reference cannot be used.
        """
        timings = []
        for part in self._parts:
            settled = self._settled(part)
            if isinstance(settled, Rejected):
                return settled
            if settled is not None:
                timings.append(settled)
        return self._ended or self._outcome(timings)

    def rejected(self, stage: Stage, reason: str, workload: Workload) -> Rejected:
        """A rejection of this configuration on a workload."""
        return Rejected(stage=stage, reason=reason[:2000], workload=workload.key, facts=self._facts)

    def _run_allowed(self) -> Rejected | None:
        session, pruner = self._session, self._context.pruner
        session.expected.compute(case for w in self._allowed for case in (Case(w), session.inputs.other(w)))
        workloads = list(self._allowed)
        if pruner is not None:
            by_key = {w.key: w for w in workloads}
            workloads = [by_key[key] for key in pruner.order(list(by_key))]
        for place, workload in enumerate(workloads, 1):
            rejected = self.run_workload(workload)
            if rejected is not None or self._is_decided(workloads[place:]):
                return rejected
        return self.meter()

    def _load(self, workload: Workload) -> None:
        """Have the binary on a device that has the workload's inputs."""
        self._device = self._session.device(workload)
        if self._handle is None:
            assert isinstance(self._compiled, Compiled), "it was refused otherwise"
            self._handle = self._device.load(self._compiled)

    def _check_and_time(self, workload: Workload, size: LaunchSize) -> None:
        """A search trial is timed on the workload's own inputs, and checked on these or others by chance."""
        session, context, handle = self._session, self._context, self._handle
        assert handle is not None
        loaded = LoadedKernel(handle, workload, size)
        other, whole = session.inputs.other(workload), context.whole
        own = whole or not session.inputs.defences.families or bool(secrets.randbits(1))
        launch = session.checker.launch(loaded, whole=whole, repeat=whole, on=None if own else other)
        if not own:
            launch = replace(launch, words=f"with {other.family.value} inputs")
        part = _Part(workload, context.evaluate(launch), size)
        self._parts.append(part)
        if part.is_refused:
            return
        plan = search_plan(session.job.objective.cache)
        plan = replace(plan, give_up_above_us=context.give_up_above_us(workload))
        samples, timed = session.sampler.sample(loaded, plan, other=other)
        evaluated = None if timed is None else context.evaluate(timed)
        self._parts[-1] = replace(part, samples=samples, timed=evaluated)

    def _is_decided(self, rest: Sequence[Workload]) -> bool:
        """True if the other workloads need not run: the configuration is rejected, or looks hopeless."""
        pruner = self._context.pruner
        if self._parts[-1].is_refused:
            return True
        if pruner is None or self._estimate is not None:
            return False
        estimate = pruner.estimate_if_hopeless(self._times_us(), [w.key for w in rest])
        return self._gives_up(estimate, rest)

    def _is_worth_metering(self) -> bool:
        """True if the energy may be worth the runs that measure it."""
        pruner = self._context.energy_pruner
        # A run of the counter is long; whether the kernel is right is known sooner.
        if pruner is None or any(isinstance(p.checked.result(), Rejected) for p in self._parts):
            return False
        estimate = pruner.estimate_if_hopeless(self._times_us())
        return not self._gives_up(estimate, [p.workload for p in self._parts])

    def _metered(self, part: _Part) -> _Part:
        counter = self._session.ports.energy
        assert part.summary is not None and self._handle is not None
        if counter is None:
            # The baseline may have been measured on another device of the class, which has one.
            return part
        side = TimedSide(self._session, LoadedKernel(self._handle, part.workload, part.size))
        millijoules, launch = launch_mj(side, counter, part.summary.median_us)
        evaluated = None if launch is None else self._context.evaluate(launch)
        return replace(part, energy_mj=millijoules, metered=evaluated)

    def _died(self, exc: ChildDied, workload: Workload, words: str = "") -> Rejected:
        """The child that ran it died, and the binary with it."""
        self._handle = None
        self._session.renew(faulted=True)
        return self.rejected(Stage.RUN, f"{words}{child_words(exc)}", workload)

    def _times_us(self) -> dict[str, float]:
        return {p.workload.key: p.summary.median_us for p in self._parts if p.summary is not None}

    def _gives_up(self, estimate: Estimate | None, rest: Sequence[Workload]) -> bool:
        """Take in an estimate; True: the workloads in `rest` are skipped for it."""
        self._estimate = estimate
        if estimate is None or estimate.goes_on:
            return False
        self._skipped = tuple(w.key for w in rest)
        return True

    def _settled(self, part: _Part) -> WorkloadTiming | Rejected | None:
        """The timing of a workload, or why the trial is rejected for it; None if it was not timed."""
        checked = part.checked.result()
        for evaluated in (part.checked, part.timed, part.metered):
            found = None if evaluated is None else evaluated.result()
            if isinstance(found, Rejected):
                return found.model_copy(update={"facts": self._facts})
        summary, session = part.summary, self._session
        if summary is None:
            return None
        too_fast = session.sampler.below_floor(part.workload, summary.median_us)
        if too_fast:
            return self.rejected(Stage.FLOOR, too_fast, part.workload)
        assert not isinstance(checked, Rejected)
        times = {session.job.objective.cache.value: summary}
        key, energy_mj = part.workload.key, part.energy_mj
        return WorkloadTiming(workload=key, max_error=checked, energy_mj=energy_mj, **times)

    def _outcome(self, timings: Sequence[WorkloadTiming]) -> Measured | CutShort:
        job, facts = self._session.job, self._facts or CompileFacts()
        in_order = _as_in(job, timings)
        expected = None if self._estimate is None else self._estimate.objective
        if self._skipped and expected is not None:
            return CutShort(timings=in_order, skipped=self._skipped, facts=facts, estimate=expected)
        objective = objective_of(job, timings, self._context.before)
        return Measured(timings=in_order, facts=facts, objective=objective, expected=expected)


def child_words(exc: ChildDied) -> str:
    """Text on the end of a child, for a reason."""
    words = _CHILD_STAGES.get(exc.cause, "ended the process that ran it")
    return f"{words}: {exc.detail}"


def _as_in(job: Job, timings: Sequence[WorkloadTiming]) -> tuple[WorkloadTiming, ...]:
    places = {w.key: place for place, w in enumerate(job.workloads)}
    return tuple(sorted(timings, key=lambda t: places[t.workload]))
