"""What tasks are given and bring back: two unions, told apart by `kind`. Stored as JSON; read by `decide`."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.job import AgentRole
from warpsmith.domain.outcome import Comparison, CompileFacts, Rejected, WorkloadTiming
from warpsmith.domain.plan import Family
from warpsmith.domain.space import Configuration
from warpsmith.domain.state import TaskKind
from warpsmith.domain.template import RuleFault, Template


class CheckedCase(Frozen):
    """Inputs and a shape on which the user's kernel is right, so that candidates must be."""

    dimensions: dict[str, int]
    family: Family = Family.DECLARED
    neighbour_of: str = ""
    """Key of the workload that this shape is near to; empty for a listed workload."""
    max_error: float = 0.0
    """Of the user's kernel, in units of the tolerance."""
    spread: float = 0.0
    """Difference of two of its runs, likewise; 0 where they are equal to the last bit."""
    elements: int = 0
    """Compared elements of all outputs."""
    growth: dict[str, float] = Field(default_factory=dict)
    """How much larger outputs typically are than on the workload's own inputs; absolute tolerances
    grow with them."""
    sizes: dict[str, float] = Field(default_factory=dict)
    """Typical size of outputs on the workload's own inputs, which default tolerances go by; empty in
    results of older versions."""


class Counters(Frozen):
    """What the platform's profiler saw of one kernel, on the heaviest workload that it runs on."""

    kernel: str = ""
    """`ConfiguredKernel.key` of that kernel."""
    values: dict[str, float] = {}
    """Hardware counters by name."""
    missing: str = ""
    """Why there are none, in one sentence; empty where there are, or where none were asked for."""

    @model_validator(mode="before")
    @classmethod
    def _older(cls, data: Any) -> Any:
        """Results of older versions hold the values alone."""
        bare = isinstance(data, dict) and not data.keys() <= cls.model_fields.keys()
        return {"values": data} if bare else data


class BaselinePayload(Frozen):
    """The user's kernel is to be checked and timed."""

    kind: Literal[TaskKind.BASELINE] = TaskKind.BASELINE


class BaselineResult(Frozen):
    """The user's kernel on every workload, or why it cannot be used."""

    kind: Literal[TaskKind.BASELINE] = TaskKind.BASELINE
    device: DeviceInfo
    timings: tuple[WorkloadTiming, ...] = ()
    facts: CompileFacts = CompileFacts()
    aa_width: float = 0.0
    """Half width of the 95 % interval of this kernel against itself: the noise that claims must clear."""
    refused: str = ""
    """Why the job cannot be tuned; empty if it can."""
    rejected: Rejected | None = None
    cases: tuple[CheckedCase, ...] = ()
    """Cases on which the kernel is right, and which candidates are checked with; empty in results of older
    versions."""
    globals: tuple[str, ...] = ()
    """Device variables of the user's kernel; candidates may have the same."""
    notes: tuple[str, ...] = ()
    """What weakens the checks of this job."""
    counters: Counters = Counters()
    """Hardware counters of the user's kernel."""
    ceilings: Ceilings | None = None
    """What the device's memory and launches allow, measured by our own kernels."""
    seconds: float = 0.0
    """Seconds that all this took; 0 in results of older versions."""


class JobBaseline(BaselineResult):
    """The baseline of a job, joined with what later tasks found out; see `joined`. Never stored."""

    counted: tuple[Counters, ...] = ()
    """Hardware counters of candidates' best configurations, the newest last."""


class ProposedCase(Frozen):
    """A shape, or inputs of another family at a listed workload, that a tester asks for."""

    dimensions: dict[str, int]
    family: Family = Family.DECLARED
    reason: str = Field(default="", max_length=500)


class CasesPayload(Frozen):
    """A tester's cases are to be tried on the user's kernel; where it is right, candidates must be."""

    kind: Literal[TaskKind.CHECK_CASES] = TaskKind.CHECK_CASES
    cases: tuple[ProposedCase, ...] = Field(default=(), max_length=16)


class CasesResult(Frozen):
    """The proposed cases on which the user's kernel is right, but for those that were known before."""

    kind: Literal[TaskKind.CHECK_CASES] = TaskKind.CHECK_CASES
    cases: tuple[CheckedCase, ...] = ()


class ProfilePayload(Frozen):
    """The best configuration of a candidate is to be profiled."""

    kind: Literal[TaskKind.PROFILE] = TaskKind.PROFILE
    candidate: str


class ProfileResult(Frozen):
    """What the platform's profiler saw of a candidate's best configuration."""

    kind: Literal[TaskKind.PROFILE] = TaskKind.PROFILE
    counters: Counters | None = None
    """None: no configuration of the candidate was measured."""


Bottleneck = Literal["memory", "latency", "launch", "occupancy", "spills", "arithmetic", "unknown"]


class Profile(Frozen):
    """What a profiler concludes from the facts."""

    bottleneck: Bottleneck
    hypotheses: tuple[str, ...] = ()
    """What to change and why, most promising first."""


class StepPayload(Frozen):
    """A question to an agent."""

    kind: Literal[TaskKind.AGENT_STEP] = TaskKind.AGENT_STEP
    role: AgentRole
    round: int = Field(ge=1)
    attempt: int = Field(default=0, ge=0)
    """How many templates of this round were rejected before, but for those whose fault was found."""
    parent: str | None = None
    """Candidate to start from; None: the user's kernel."""
    failure: str = ""
    """Why the previous attempt was rejected."""
    plan: str = ""
    """What the planner asked of the templater."""
    profile: Profile | None = None
    """What the profiler said of the kernel to start from."""
    rejected: str | None = None
    """The candidate that the repairer is to mend."""
    draft: Template | None = None
    """What the tuner is to set bounds to."""
    declined: tuple[str, ...] = ()
    """What the templater of the draft declined."""
    faults: tuple[RuleFault, ...] = ()
    """Rules that made templates of this job fail; they are not to be used again."""


class StepResult(Frozen):
    """An agent's answer."""

    kind: Literal[TaskKind.AGENT_STEP] = TaskKind.AGENT_STEP
    provider: str
    template: Template | None = None
    declined: tuple[str, ...] = ()
    plan: str = ""
    stop: str = ""
    """Why there is nothing more to try; empty where there is."""
    expected_gain: float | None = None
    """The planner's: speed-up over the best so far; None where it does not say."""
    profile: Profile | None = None
    """The profiler's."""
    cases: tuple[ProposedCase, ...] = ()
    """The tester's."""
    ask_tuner: bool = False
    """The template goes to the tuner before it is searched."""
    prompt: str = ""
    reply: str = ""
    model: str = ""
    fallback: str = ""
    """Why the rules answered in another provider's place; empty where they did not."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way: refused calls, replies of no use."""
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    latency_s: float = 0.0


class Seen(Frozen):
    """What the decision that starts a slice goes by, so that a replay can take it again."""

    devices: int
    """That the job might use."""
    beside: int
    """Slices of the candidate that were open."""
    trials: int
    """Of the candidate that were done, those of open slices included."""


class SlicePayload(Frozen):
    """A lease on the search of one candidate."""

    kind: Literal[TaskKind.SLICE] = TaskKind.SLICE
    candidate: str
    trials: int = Field(ge=1)
    """How many trials this slice may have; where it is shared, it and those beside it have them together."""
    seconds: float = Field(gt=0)
    shared: bool = False
    """Other slices of the candidate may run at the same time, so each configuration is claimed first."""
    candidate_trials: int | None = None
    """Where it is shared: how many trials the candidate may have in all."""
    seen: Seen | None = None
    """None: not recorded, as by older versions."""


class SliceResult(Frozen):
    """What became of a slice."""

    kind: Literal[TaskKind.SLICE] = TaskKind.SLICE
    trials: int = 0
    seconds: float = 0.0
    exhausted: bool = False
    """The searcher has nothing more to propose."""
    spent: bool = False
    """All trials that its slices may have between them are proposed."""
    rejected: str = ""
    """The template fails with its default configuration, and why: the candidate is of no use."""
    faults: tuple[RuleFault, ...] = ()
    """The rules for which it does, where they were found; without them it holds."""
    feasible: int | None = None


class VerifyPayload(Frozen):
    """Winners are to be measured again."""

    kind: Literal[TaskKind.VERIFY] = TaskKind.VERIFY
    pairs: int = Field(default=12, ge=4, le=200)
    seconds: float | None = None
    """That it may take, energy included; comparisons are made whatever they take."""


class Choice(Frozen):
    """What serves a workload. No candidate: the baseline stays."""

    workload: str
    candidate: str | None = None
    configuration: Configuration | None = None
    speedups: dict[str, float] = {}
    """By workload, baseline time over this configuration's: on its own the low end of the verified
    interval, on others what the search saw."""


class VerifyResult(Frozen):
    """The published figures."""

    kind: Literal[TaskKind.VERIFY] = TaskKind.VERIFY
    comparisons: tuple[Comparison, ...]
    choices: tuple[Choice, ...]
    speedup: float
    """Weighted geometric mean over workloads; a workload that keeps its baseline counts as 1."""
    withdrawn: tuple[str, ...] = ()
    """Winners of the search that failed their second check, and why."""


Payload = Annotated[
    BaselinePayload | CasesPayload | ProfilePayload | StepPayload | SlicePayload | VerifyPayload,
    Field(discriminator="kind"),
]
"""What a task is given."""
Result = Annotated[
    BaselineResult | CasesResult | ProfileResult | StepResult | SliceResult | VerifyResult,
    Field(discriminator="kind"),
]
"""What a task brings back."""


def joined(results: Iterable[Result | None]) -> JobBaseline | None:
    """What is known of the user's kernel: its baseline, the tester's cases, the profiles of candidates.

    Args:
        results: of the job's tasks, in order; those of other kinds are passed over.

    Returns:
        None if there is no baseline among them.
    """
    baseline: BaselineResult | None = None
    cases: list[CheckedCase] = []
    counted: list[Counters] = []
    for result in results:
        match result:
            case BaselineResult():
                baseline = result
            case CasesResult():
                cases.extend(result.cases)
            case ProfileResult(counters=Counters() as found):
                counted.append(found)
    if baseline is None:
        return None
    return JobBaseline.model_validate(
        {**dict(baseline), "cases": (*baseline.cases, *cases), "counted": tuple(counted)}
    )
