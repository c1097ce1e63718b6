"""Outcomes of configurations. A bad kernel is a value here, never an exception."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from warpsmith.domain.base import Frozen
from warpsmith.domain.templates.space import Configuration

MAX_LOG_CHARACTERS = 16_384


class Stage(StrEnum):
    """Stage at which a configuration was rejected, in the order in which stages are reached."""

    SPACE = "space"
    """The configuration breaks a constraint."""
    COMPILE = "compile"
    LAUNCH = "launch"
    """The launch breaks a device limit, or the driver refused it."""
    RUN = "run"
    """The kernel crashed or ran past its deadline."""
    GUARD = "guard"
    """The kernel wrote outside its buffers or into an input."""
    CORRECTNESS = "correctness"
    FLOOR = "floor"
    """The measured time is shorter than the hardware allows."""
    SANITIZER = "sanitizer"
    """The platform's own tools found a memory error, a race or a misused barrier."""
    TIMING = "timing"
    """The kernel could not be timed to the required precision."""


class CompileFacts(Frozen):
    """Facts that the compiler reported. None: the platform does not report it."""

    seconds: float = 0.0
    binary_bytes: int = 0
    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None
    local_bytes: int | None = None
    compiler: str = Field(default="", exclude_if=lambda name: not name)
    """Compiler and version, if the back end does not follow from the device, such as `triton 3.6.0`."""


def joined_facts(facts: Sequence[CompileFacts]) -> CompileFacts:
    """Facts of the kernels of a sequence as those of one: the most of each, and all spills together."""

    def known(name: str) -> list[int]:
        return [v for f in facts if (v := getattr(f, name)) is not None]

    most = {n: max(known(n), default=None) for n in ("registers", "static_shared_bytes", "local_bytes")}
    spills = known("spill_bytes")
    compiler = next((f.compiler for f in facts if f.compiler), "")
    return CompileFacts(**most, spill_bytes=sum(spills) if spills else None, compiler=compiler)


class TimeSummary(Frozen):
    """Device time of one launch, in microseconds."""

    median_us: float = Field(gt=0)
    low_us: float = Field(gt=0)
    """10th percentile of the samples."""
    high_us: float = Field(gt=0)
    """90th percentile of the samples."""
    samples: int = Field(ge=1)
    launches_per_sample: int = Field(ge=1)

    def scaled(self, by: float) -> "TimeSummary":
        """Copy with all times multiplied by a factor."""
        times = {"median_us": self.median_us * by, "low_us": self.low_us * by, "high_us": self.high_us * by}
        return self.model_copy(update=times)


class WorkloadTiming(Frozen):
    """Timing of one configuration on one workload."""

    workload: str
    """The workload's `Workload.key`."""
    cold: TimeSummary | None = None
    hot: TimeSummary | None = None
    max_error: float | None = None
    """Largest |got - want| / (atol + rtol * |want|) over all compared elements; above 1 is wrong."""
    energy_mj: float | None = None
    """Energy of a launch in millijoules, by the device's counter; None unless the objective is energy."""

    def scaled(self, by: float) -> "WorkloadTiming":
        """Copy with the times of both cache states multiplied by a factor; errors and energy stay."""
        times = {name: s.scaled(by) for name in ("cold", "hot") if (s := getattr(self, name)) is not None}
        return self.model_copy(update=times)


class Measured(Frozen):
    """Compiled, checked and timed on every workload that the constraints allow."""

    kind: Literal["measured"] = "measured"
    timings: tuple[WorkloadTiming, ...]
    facts: CompileFacts = CompileFacts()
    objective: float = Field(gt=0)
    """Weighted geometric mean of time divided by baseline time, or of energy divided by baseline energy if
    the job minimises energy. Below 1 is better than the baseline."""
    drift: float = 1.0
    """Current baseline time divided by its stored time: the weighted geometric mean of `drifts`."""
    drifts: dict[str, float] = {}
    """Drift by workload key, by which times are corrected; empty without a drift."""
    expected: float | None = None
    """The estimate by which the trial would have been pruned, if it was continued at random."""

    @property
    def steady_timings(self) -> tuple[WorkloadTiming, ...]:
        """The timings as on a device on which the baseline takes its stored time."""
        return tuple(t.scaled(1 / self.drifts.get(t.workload, 1.0)) for t in self.timings)


class CutShort(Frozen):
    """Checked and timed on its first workloads only, or without its energy, because it showed too little
    promise.

    This is no measurement: it never wins, is never served and is nobody's best.
    """

    kind: Literal["cut_short"] = "cut_short"
    timings: tuple[WorkloadTiming, ...]
    skipped: tuple[str, ...]
    """`Workload.key`s of the workloads that were skipped, or whose energy was not measured."""
    facts: CompileFacts = CompileFacts()
    estimate: float = Field(gt=0)
    """Estimate of the objective, for the search alone; never better than the best measured objective."""


class WrongElement(Frozen):
    """An element of an output beside the value that is wanted; as texts, for it may be no number."""

    output: str
    element: int
    """Position in the whole output, flat."""
    got: str
    want: str


class FailedCase(Frozen):
    """Inputs on which a launch failed, without the seed that they are drawn from."""

    shape: str
    """`Workload.key` of their extents."""
    family: str
    kind: str = ""
    """Kind of the edge case; empty if they are none."""
    scalars: dict[str, float] = {}
    """Scalars whose value is another than the job gives."""
    wrong: tuple[WrongElement, ...] = ()
    """The first few wrong elements; empty if values are not the reason."""

    def __str__(self) -> str:
        """Words for whoever has to mend the kernel."""
        kind = f" ({self.kind})" if self.kind else ""
        words = [f"shape {self.shape}", f"{self.family} inputs{kind}"]
        words += [f"{name} = {value:g}" for name, value in self.scalars.items()]
        words += [f"{w.output}[{w.element}] is {w.got}, wanted {w.want}" for w in self.wrong]
        return "; ".join(words)


class Rejected(Frozen):
    """A configuration that cannot be used, with the stage and the reason."""

    kind: Literal["rejected"] = "rejected"
    stage: Stage
    reason: str = Field(max_length=2000)
    log: str = Field(default="", max_length=MAX_LOG_CHARACTERS)
    workload: str | None = None
    """The workload's `Workload.key`."""
    facts: CompileFacts | None = None
    _case: FailedCase | None = PrivateAttr(default=None)

    @property
    def case(self) -> FailedCase | None:
        """Inputs of the launch that failed, if one did. They are not stored with a trial."""
        return self._case

    def on(self, case: FailedCase) -> "Rejected":
        """Copy that knows its case."""
        found = self.model_copy()
        found._case = case
        return found

    def __str__(self) -> str:
        """The reason with its stage."""
        return f"{self.stage.value}: {self.reason}"


OutcomeKind = Literal["measured", "cut_short", "rejected"]
"""The `kind` of an outcome."""

Outcome = Annotated[Measured | CutShort | Rejected, Field(discriminator="kind")]


def told(outcome: Outcome) -> float | None:
    """Value told to the searcher: the objective or its estimate; None if the configuration was rejected."""
    if isinstance(outcome, Rejected):
        return None
    return outcome.objective if isinstance(outcome, Measured) else outcome.estimate


class Interval(Frozen):
    """An estimate and its 95 % confidence interval."""

    estimate: float
    low: float
    high: float


MIN_CLAIM = 0.01
"""Least relative difference that is ever claimed, however certain it is."""


def margin_of(aa_width: float) -> float:
    """Relative difference that a claim must exceed, by the A/A width of its workload."""
    return max(MIN_CLAIM, aa_width)


class Verdict(StrEnum):
    """Claims that the comparison of a winner with the baseline supports."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    """The interval does not exceed the noise of the device."""
    NOISY = "noisy"


class Conditions(Frozen):
    """State of the device while a block was timed."""

    side: Literal["A", "B"]
    """A: the user's kernel. B: the winner."""
    core_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    power_limit_w: float
    throttled: tuple[str, ...] = ()
    """Reasons why the clocks were throttled. Such a block is timed again, a limited number of times."""


class NoGain(Frozen):
    """A workload on which no trial was faster than the baseline. Nothing was measured again, and the baseline
    is kept."""

    workload: str
    """Key of the workload."""
    baseline_us: float
    best_us: float
    """Time of the best trial in the search, µs, corrected for drift."""


class CheckedShape(Frozen):
    """A shape that no workload lists, drawn in secret between workloads, on which a winner was run."""

    dimensions: dict[str, int]
    candidate: str
    configuration: Configuration
    speedup: float
    """Time of the user's kernel divided by the winner's, one timing each. The winner was right in every
    element."""


class Comparison(Frozen):
    """A winner against the baseline on one workload: fresh processes, fresh seeds, interleaved blocks."""

    workload: str
    configuration_key: str
    baseline_us: float
    best_us: float
    speedup: Interval
    """Baseline time divided by winner time, over block pairs."""
    verdict: Verdict
    cache: str
    other_baseline_us: float | None = None
    """Baseline time with the other cache state, µs; informative only."""
    other_best_us: float | None = None
    pairs: int
    aa_width: float = 0.0
    """Half width of the A/A interval of this workload (the user's kernel against itself); a claim must exceed
    it, and 1 %."""
    sanitizers: dict[str, str] = Field(default_factory=dict)
    """Findings by sanitizer (empty: no finding); under `not run`, the reason why none ran."""
    blocks: tuple[Conditions, ...] = ()
    """State of the device during each timed block, in order; empty if the platform does not report it."""
    floor_us: float | None = None
    """Shortest time that memory and launches of the device allow, µs, measured with the service's own
    kernels; None: not measured, or the winner was faster."""
    floor_share: float | None = None
    """`floor_us` divided by the winner's time; at most 1."""
    floor_bound: Literal["bytes", "flops", "launch"] | None = None
    """Bound of the floor: moving all buffers once, the operations, or the launch."""
    baseline_mj: float | None = None
    """Energy of a launch in millijoules, by the device's counter. None: the job did not ask for it
    (`objective.energy`), or the device has no counter."""
    best_mj: float | None = None
    energy_spread: float | None = None
    """Largest relative difference of `baseline_mj` or `best_mj` between two runs."""
    pareto: tuple[str, ...] = ()
    """Pareto front in time and energy of the verified configurations and the baseline (`baseline`), by key;
    empty if no energy was measured."""
    notes: tuple[str, ...] = ()
    """Reasons why a gain that was seen is not claimed, in words."""
