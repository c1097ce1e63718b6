"""Outcomes: what became of a configuration. A bad kernel is a value here, never an exception."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_validator

from warpsmith.domain.base import Frozen

MAX_LOG_CHARACTERS = 16_384


class Stage(StrEnum):
    """Where a configuration was rejected, in the order in which they are reached."""

    SPACE = "space"
    """It breaks a constraint."""
    COMPILE = "compile"
    RESOURCES = "resources"
    """It compiled, but needs more than the device has, or spills."""
    LAUNCH = "launch"
    """The launch breaks a device limit, or the driver refused it."""
    RUN = "run"
    """It crashed or ran past its deadline."""
    GUARD = "guard"
    """It wrote outside its buffers or into an input."""
    CORRECTNESS = "correctness"
    FLOOR = "floor"
    """It claims to be faster than the hardware can be."""
    SANITIZER = "sanitizer"
    """The platform's own tools found a memory error, a race or a misused barrier."""
    TIMING = "timing"
    """It could not be timed to the wanted precision."""


class CompileFacts(Frozen):
    """What the compiler reported. None where the platform does not say."""

    seconds: float = 0.0
    binary_bytes: int = 0
    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None
    local_bytes: int | None = None


class TimeSummary(Frozen):
    """Device time of one launch, in microseconds."""

    median_us: float = Field(gt=0)
    low_us: float = Field(gt=0)
    """10th percentile of the samples."""
    high_us: float = Field(gt=0)
    """90th percentile of the samples."""
    samples: int = Field(ge=1)
    launches_per_sample: int = Field(ge=1)


class WorkloadTiming(Frozen):
    """One workload of one configuration."""

    workload: str
    """`Workload.key`."""
    cold: TimeSummary | None = None
    hot: TimeSummary | None = None
    max_error: float | None = None
    """Largest |got - want| / (atol + rtol * |want|) over all compared elements; above 1 is wrong."""
    energy_mj: float | None = None
    """Millijoules of a launch by the device's own counter; None where energy does not count."""


class Measured(Frozen):
    """Compiled, checked and timed on every workload that the constraints allow."""

    kind: Literal["measured"] = "measured"
    timings: tuple[WorkloadTiming, ...]
    facts: CompileFacts = CompileFacts()
    objective: float = Field(gt=0)
    """Weighted geometric mean of time over baseline time, or of energy over the baseline's where the job
    is about energy. Below 1 is better than the baseline."""
    drift: float = 1.0
    """The baseline's time then over its stored time, where far from 1; then times are corrected."""
    expected: float | None = None
    """The estimate with which it would have been cut short, where it went on by chance."""


class CutShort(Frozen):
    """Checked and timed on its first workloads only, or not metered, since the rest promised too little.

    It is no measurement: it never wins, is never served and is nobody's best.
    """

    kind: Literal["cut_short"] = "cut_short"
    timings: tuple[WorkloadTiming, ...]
    skipped: tuple[str, ...]
    """`Workload.key` of those that it did not run on, or whose energy was not measured."""
    facts: CompileFacts = CompileFacts()
    estimate: float = Field(gt=0)
    """Of the objective, for the search alone; no better than the best that was measured."""


class Rejected(Frozen):
    """Not usable, and why."""

    kind: Literal["rejected"] = "rejected"
    stage: Stage
    reason: str = Field(max_length=2000)
    log: str = Field(default="", max_length=MAX_LOG_CHARACTERS)
    workload: str | None = None
    """`Workload.key`."""
    facts: CompileFacts | None = None

    @field_validator("workload")
    @classmethod
    def _without_case(cls, workload: str | None) -> str | None:
        """Outcomes stored before November 2026 may name the inputs as well, after a "#"."""
        return None if workload is None else workload.partition("#")[0]


OutcomeKind = Literal["measured", "cut_short", "rejected"]
"""The `kind` of an outcome."""

Outcome = Annotated[Measured | CutShort | Rejected, Field(discriminator="kind")]


def told(outcome: Outcome) -> float | None:
    """What a search hears: the objective or its estimate; None where the configuration was rejected."""
    if isinstance(outcome, Rejected):
        return None
    return outcome.objective if isinstance(outcome, Measured) else outcome.estimate


class Interval(Frozen):
    """An estimate and its 95 % confidence interval."""

    estimate: float
    low: float
    high: float


class Verdict(StrEnum):
    """What the comparison of a winner with the baseline may claim."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    """The interval does not clear the noise of the device."""
    NOISY = "noisy"


class Conditions(Frozen):
    """A device while a block was timed."""

    side: Literal["A", "B"]
    """A is the user's kernel."""
    core_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    power_limit_w: float
    throttled: tuple[str, ...] = ()
    """Why its clocks were held down; such a block is timed again, a few times."""


class Comparison(Frozen):
    """A winner against the baseline on one workload: fresh processes, fresh seeds, interleaved blocks."""

    workload: str
    configuration_key: str
    baseline_us: float
    best_us: float
    speedup: Interval
    """Baseline time over winner time, over block pairs."""
    verdict: Verdict
    cache: str
    other_baseline_us: float | None = None
    """The same with the other cache state, for information."""
    other_best_us: float | None = None
    pairs: int
    aa_width: float = 0.0
    """Half width of this device's own A/A interval; a claim must clear it."""
    sanitizers: dict[str, str] = Field(default_factory=dict)
    """By tool of the platform, what it found (empty: nothing); under `not run`, why none did."""
    blocks: tuple[Conditions, ...] = ()
    """The device during each timed block, in their order; empty where it cannot be asked."""
    floor_us: float | None = None
    """Shortest time that the device's memory and launches allow, by our own kernels; None: not measured."""
    floor_share: float | None = None
    """`floor_us` over the winner's time: above 1, some bytes stayed in a cache."""
    floor_bound: Literal["bytes", "flops", "launch"] | None = None
    """What bounds the floor: all buffers moved once, or the launch."""
    baseline_mj: float | None = None
    """Energy of a launch in millijoules, by the device's own counter; None: it has none, or an argument is
    `inout`, and so is restored between launches."""
    best_mj: float | None = None
    energy_spread: float | None = None
    """Largest relative difference of `baseline_mj` or `best_mj` between two runs."""
    pareto: tuple[str, ...] = ()
    """Of the verified configurations and the baseline (`baseline`), by key, those that no other beats in both
    time and energy; empty where no energy was measured."""
