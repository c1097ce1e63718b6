"""What the service does with a candidate, on a real device through the real sandbox.

Baseline, then the candidate as a first-time trial of a slice, then as a winner: the functions of
`warpsmith.tuning` in the service's order. Nothing of theirs is done here a second time.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from testbed.adversarial.forged import FORGERIES, ForgingOpener
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Comparison, Measured, Outcome, Rejected, Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, sanitizer_for
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.execution.session_ports import SessionPorts
from warpsmith.tuning.ports import CompilerPort, Searcher
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.ceilings import ceilings_of
from warpsmith.tuning.trials.slice import SliceLimits, run_slice
from warpsmith.tuning.winners.verify import ComparisonPlan, Finalist, verify_winners
from warpsmith.verify.defences import Defences

RUN_TIMEOUT_S = 4.0
"""Deadline of one launch or timing; the kernels here take milliseconds."""


@dataclass(frozen=True)
class CorpusVerdict:
    """What became of a candidate."""

    accepted: bool
    """It went through every check, as a first-time candidate and as a winner on every workload."""
    layer: str
    """Where it ended: `task gate`, a stage of the trial, or `winner` and why it was withdrawn."""
    reason: str = ""
    comparisons: tuple[Comparison, ...] = ()

    @property
    def faster(self) -> bool:
        """Some workload would be published as faster."""
        return self.accepted and any(c.verdict is Verdict.FASTER for c in self.comparisons)

    def meets(self, expect: str) -> bool:
        """Whether this is the expected verdict."""
        return {"rejected": not self.accepted, "accepted": self.accepted, "no gain": not self.faster}[expect]


class OnceCompiler:
    """Compiles equal sources once, so that a baseline is not built again for every candidate."""

    def __init__(self, pool: CompilerPort) -> None:
        self._pool = pool
        self._made: dict[tuple[object, ...], Future[Compiled | Rejected]] = {}

    def submit(self, kernel: ConfiguredKernel, device: DeviceInfo) -> "Future[Compiled | Rejected]":
        """See `CompilerPort.submit`."""
        variant = kernel.specialisation and kernel.specialisation.key
        key = (
            kernel.source,
            kernel.kernel.entry,
            kernel.kernel.options,
            variant,
            device.uid,
            kernel.tells_words,
        )
        if key not in self._made:
            self._made[key] = self._pool.submit(kernel, device)
        return self._made[key]


@dataclass
class _Sink:
    outcomes: list[Outcome] = field(default_factory=list)

    def proposed(self, configurations: Sequence[Configuration]) -> None:
        """Nothing is kept."""

    def finished(self, configuration: Configuration, outcome: Outcome, seconds: float) -> None:
        self.outcomes.append(outcome)

    def alive(self) -> bool:
        return True


class _NothingMore(Searcher):
    """A searcher of a space with one configuration, which the gate has run."""

    def ask(self, count: int) -> Sequence[Configuration]:
        return ()

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """Nothing is learned."""


@dataclass
class Harness:
    """One device, its children and compilers; holds a session and a baseline for each job."""

    device: DeviceInfo
    pool: CompilePool
    pairs: int = 4
    run_timeout_s: float = RUN_TIMEOUT_S
    defences: Defences = field(default_factory=Defences)
    _sessions: dict[str, tuple[DeviceSession, BaselineResult]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        opener = ChildOpener(self.device, run_timeout_s=self.run_timeout_s)
        sanitizer = sanitizer_for(self.device, opener)
        self._forging = ForgingOpener(opener)
        compiler = OnceCompiler(self.pool)
        self.ports = SessionPorts(self._forging, compiler, ReferenceRunner(), self.defences, sanitizer)
        # With the service's own deadline: on a busy machine the one of this harness is too short for it.
        assert ceilings_of(replace(self.ports, opener=ChildOpener(self.device))) is not None

    def close(self) -> None:
        """End the children."""
        for session, _ in self._sessions.values():
            session.close()
        self._sessions.clear()

    def baseline(self, job: Job) -> tuple[DeviceSession, BaselineResult]:
        """The session of a job and what its own kernel does, measured once."""
        key = job.model_dump_json()
        if key not in self._sessions:
            session = DeviceSession(job, self.ports)
            self._sessions[key] = (session, measure_baseline(session))
        return self._sessions[key]

    def try_candidate(self, job: Job, template: Template, forged: str = "") -> CorpusVerdict:
        """Take a candidate through the whole acceptance procedure.

        Args:
            forged: how its process shortens the times that it reports: a word of `FORGERIES`, or empty.
        """
        session, baseline = self.baseline(job)
        self._forging.binaries.clear()
        if forged:
            compiled = session.compile(template.configured(template.space.defaults))
            assert isinstance(compiled, Compiled), compiled
            self._forging.binaries[compiled.binary] = FORGERIES[forged]
        if baseline.refused:
            return CorpusVerdict(False, "task gate", baseline.refused)
        outcome = self._first_trial(session, baseline, template)
        if isinstance(outcome, Rejected):
            # The next candidate must not inherit what this one did to the child.
            session.renew()
            return CorpusVerdict(False, outcome.stage.value, outcome.reason)
        assert isinstance(outcome, Measured), "one trial alone cannot be pruned"
        return self._as_winner(job, baseline, template, outcome)

    def _first_trial(self, session: DeviceSession, baseline: BaselineResult, template: Template) -> Outcome:
        sink = _Sink()
        limits = SliceLimits(seconds=60, trials=1, compile_ahead=1)
        run_slice(session, template, baseline, _NothingMore(), sink, limits)
        return sink.outcomes[0]

    def _as_winner(
        self, job: Job, baseline: BaselineResult, template: Template, outcome: Measured
    ) -> CorpusVerdict:
        finalist = Finalist("candidate", template, template.space.defaults, outcome)
        plan = ComparisonPlan(self.pairs, baseline.aa_widths, least_gain=None)
        result = verify_winners(job, self.ports, [finalist], plan, lambda: True, baseline)
        if result.withdrawn:
            return CorpusVerdict(False, "winner", "; ".join(map(str, result.withdrawn)), result.comparisons)
        return CorpusVerdict(True, "", "", result.comparisons)
