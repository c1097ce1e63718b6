"""Payloads and results of tasks: two unions, told apart by `kind`. Stored as JSON; read by `decide`."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from warpsmith.domain.base import Frozen
from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.domain.jobs.job import AgentRole, ProviderName
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.state import SliceEnd, TaskKind
from warpsmith.domain.templates.declined_rule import DeclinedRule
from warpsmith.domain.templates.outcome import (
    CheckedShape,
    Comparison,
    CompileFacts,
    FailedCase,
    NoGain,
    Rejected,
    Stage,
    WorkloadTiming,
)
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import RuleFault, Template

MAX_ANSWER_CHARACTERS = 16_000
SHORTENED = "\n[shortened]"


class CheckedCase(Frozen):
    """Inputs and a shape on which the user's kernel is right, so that candidates must be."""

    dimensions: dict[str, int]
    family: Family = Family.DECLARED
    variant: int = 0
    """Number of the edge case, if the family is `world`; else 0."""
    neighbour_of: str = ""
    """Key of the workload from which this shape was derived; empty for a listed workload."""
    max_error: float = 0.0
    """Largest error of the user's kernel, in units of the tolerance."""
    spread: float = 0.0
    """Largest difference of two runs of it, in the same unit; 0 if they are equal to the last bit."""
    elements: int = 0
    """Number of compared elements of all outputs."""
    growth: dict[str, float] = Field(default_factory=dict)
    """Growth of outputs by name: their typical size divided by that on the workload's own inputs. Absolute
    tolerances grow with it."""
    sizes: dict[str, float] = Field(default_factory=dict)
    """Typical size of outputs on the workload's own inputs, on which default tolerances are based."""
    missed: dict[str, float] = Field(default_factory=dict)
    """Share of the elements of integer outputs by name in which the user's kernel was a step off, and in
    which a candidate may be."""


class Counters(Frozen):
    """Hardware counters of one kernel on the heaviest workload that it runs on."""

    kernel: str = ""
    """`ConfiguredKernel.key` of that kernel."""
    values: dict[str, float] = {}
    """Hardware counters by name."""
    missing: str = ""
    """Reason why there are none, in one sentence; empty if there are, or if none were requested."""


class BaselinePayload(Frozen):
    """The user's kernel is to be checked and timed."""

    kind: Literal[TaskKind.BASELINE] = TaskKind.BASELINE


class BaselineResult(Frozen):
    """Measurements of the user's kernel on every workload, or the reason why it cannot be used."""

    kind: Literal[TaskKind.BASELINE] = TaskKind.BASELINE
    device: DeviceInfo
    timings: tuple[WorkloadTiming, ...] = ()
    facts: CompileFacts = CompileFacts()
    aa_width: float = 0.0
    """The largest of `aa_widths`."""
    aa_widths: dict[str, float] = {}
    """Half width of the kernel's 95 % A/A interval by workload key: the noise that claims on it must exceed.
    Without workloads whose launches take too long."""
    refused: str = ""
    """Reason for not tuning the job; empty if it can be tuned."""
    rejected: Rejected | None = None
    cases: tuple[CheckedCase, ...] = ()
    """Cases on which the kernel is right, and which candidates are checked with."""
    globals: tuple[str, ...] = ()
    """Device variables of the user's kernel; candidates may have the same."""
    telling: tuple[str, ...] = ()
    """Telling words of the user's kernel, as in `Compiled.telling`; candidates may use the same."""
    notes: tuple[str, ...] = ()
    """Circumstances that weaken the checks of this job."""
    faulted: tuple[dict[str, int], ...] = ()
    """Dimensions of shapes on which the kernel ended its process."""
    counters: Counters = Counters()
    """Hardware counters of the user's kernel."""
    ceilings: Ceilings | None = None
    """Ceilings of the device, measured with the service's own kernels."""
    seconds: float = 0.0
    """Seconds that all this took."""

    @property
    def least_width(self) -> float:
        """A/A width of the quietest workload: a gain below it could be claimed nowhere."""
        return min(self.aa_widths.values(), default=self.aa_width)

    def width_of(self, workload: str) -> float:
        """A/A width of a workload by its key; the largest one if its own was not measured."""
        return self.aa_widths.get(workload, self.aa_width)


class JobBaseline(BaselineResult):
    """The baseline of a job, joined with what later tasks found out; see `joined`. Never stored."""

    counted: tuple[Counters, ...] = ()
    """Hardware counters of candidates' best configurations, the newest last."""


class ProposedCase(Frozen):
    """A shape, or inputs of another family for a listed workload, requested by a tester."""

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
    """Findings of the platform's profiler on a candidate's best configuration."""

    kind: Literal[TaskKind.PROFILE] = TaskKind.PROFILE
    counters: Counters | None = None
    """Counters of the platform; None: no configuration of the candidate was measured."""


Bottleneck = Literal["memory", "latency", "launch", "occupancy", "spills", "arithmetic", "unknown"]


class Profile(Frozen):
    """A profiler's conclusions from the facts."""

    bottleneck: Bottleneck
    hypotheses: tuple[str, ...] = ()
    """Changes and their reasons, most promising first."""


ToolName = Literal["compile", "check", "time", "profile", "history"]


class ToolAnswer(Frozen):
    """What a tool says to an agent."""

    text: str = Field(max_length=MAX_ANSWER_CHARACTERS)
    """Words and numbers for the agent; a compiler's messages in it are data."""
    ok: bool = True
    """False if what was asked for did not hold: it does not compile, is wrong, or could not be done."""
    seconds: float = 0.0
    """Seconds that it took."""

    @classmethod
    def of(cls, lines: Sequence[str], ok: bool = True) -> "ToolAnswer":
        """The answer of these lines, shortened to its limit."""
        text = "\n".join(lines)
        if len(text) > MAX_ANSWER_CHARACTERS:
            text = text[: MAX_ANSWER_CHARACTERS - len(SHORTENED)] + SHORTENED
        return cls(text=text, ok=ok)


class ToolCall(Frozen):
    """A tool that an agent wants used."""

    id: str
    """Unique in its conversation."""
    tool: ToolName
    draft: str = ""
    """Name of the template in this conversation (`d0`, `d1`); empty if the tool needs none."""
    template: Template | None = None
    """Accepted form of that template."""
    configurations: tuple[Configuration, ...] = ()
    """Configurations of the template; empty: its defaults."""
    answer: ToolAnswer | None = None
    """The answer if it needs no device; None: a worker has to find it."""


class ToolPayload(Frozen):
    """Tools are to be used for an agent."""

    kind: Literal[TaskKind.TOOL] = TaskKind.TOOL
    step: str
    """Task of the turn that wants them; its result holds the calls."""
    seconds: float = Field(gt=0)
    """Limit on the seconds of all its calls; a configuration that has begun is finished."""


class ToolResult(Frozen):
    """Answers of the tools."""

    kind: Literal[TaskKind.TOOL] = TaskKind.TOOL
    answers: dict[str, ToolAnswer] = {}
    """By id of the call."""
    seconds: float = 0.0
    """Seconds that all this took."""


class Idea(Frozen):
    """One of the ways that a planner wants tried."""

    name: str = ""
    """By which the job knows it again; empty if its planner named a single plan."""
    sentence: str = ""
    """How it differs from the others."""
    plan: str = ""
    """Task for the templater."""
    expected_gain: float | None = None
    """Expected speed-up over the best so far; None if unknown."""


class StepPayload(Frozen):
    """A question to an agent."""

    kind: Literal[TaskKind.AGENT_STEP] = TaskKind.AGENT_STEP
    role: AgentRole
    round: int = Field(ge=1)
    attempt: int = Field(default=0, ge=0)
    """Number of earlier rejected templates of this round, without those due to a faulty rule."""
    parent: str | None = None
    """Candidate to start from; None: the user's kernel."""
    failure: str = ""
    """Reason why the previous attempt was rejected."""
    plan: str = ""
    """The planner's task for the templater."""
    profile: Profile | None = None
    """The profiler's reply about the kernel to start from."""
    rejected: str | None = None
    """Candidate that the repairer has to mend."""
    draft: Template | None = None
    """Template for which the tuner has to set bounds."""
    declined: tuple[DeclinedRule, ...] = ()
    """Rules that the templater of the draft declined."""
    faults: tuple[RuleFault, ...] = ()
    """Rules that made templates of this job fail; they must not be used again."""
    provider: ProviderName | None = None
    """Who must answer; None: whom the job or the operator chose."""
    turn: int = Field(default=0, ge=0)
    """Number of earlier turns of this conversation, each of which wanted tools used."""
    first_turn: str = ""
    """Task of the conversation's first turn; empty in that turn itself."""
    tools: int = Field(default=0, ge=0)
    """Number of tool calls that are left."""
    tool_seconds: float = 0.0
    """Seconds that tools may still take; a configuration that has begun is finished."""
    ideas: int = Field(default=1, ge=1)
    """Number of ideas that the planner may answer with."""
    idea: str = ""
    """Name of the idea that the template follows; empty if its planner named none."""


class StepResult(Frozen):
    """An agent's answer, or the tools that it wants used before it answers."""

    kind: Literal[TaskKind.AGENT_STEP] = TaskKind.AGENT_STEP
    provider: str
    template: Template | None = None
    declined: tuple[DeclinedRule, ...] = ()
    plan: str = ""
    stop: str = ""
    """Reason why there is nothing more to try; empty if there is something."""
    expected_gain: float | None = None
    """The planner's expected speed-up over the best so far, by its best idea; None if it gives none."""
    ideas: tuple[Idea, ...] = ()
    """The planner's ideas, most promising first; empty if it gave a single plan."""
    profile: Profile | None = None
    """The profiler's reply."""
    cases: tuple[ProposedCase, ...] = ()
    """The tester's cases."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Empty in an answer."""
    ask_tuner: bool = False
    """True if the template goes to the tuner before it is searched."""
    earlier: tuple[str, ...] = ()
    """Ids of the earlier jobs of which the agent was told."""
    prompt: str = ""
    reply: str = ""
    model: str = ""
    fallback: str = ""
    """Reason why the rules answered in another provider's place; empty if they did not."""
    notes: tuple[str, ...] = ()
    """Problems on the way: refused calls, unusable replies."""
    calls: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    """Tokens of prompts that the server had kept; `tokens` has them too."""
    written_tokens: int = 0
    """Tokens of prompts that the server kept for later; `tokens` has them too."""
    usd: float = 0.0
    latency_s: float = 0.0


class SliceBasis(Frozen):
    """State on which the decision to start a slice was based, so that a replay can repeat it."""

    devices: int
    """Number of devices that the job could use."""
    beside: int
    """Number of open slices of the candidate."""
    trials: int
    """Number of the candidate's finished trials, including those of open slices."""


class SlicePayload(Frozen):
    """A lease on the search of one candidate."""

    kind: Literal[TaskKind.SLICE] = TaskKind.SLICE
    candidate: str
    trials: int = Field(ge=1)
    """Trials that this slice may run. If `shared`, the limit is for all slices of the candidate that run at
    the same time."""
    seconds: float = Field(gt=0)
    shared: bool = False
    """True if other slices of the candidate may run at the same time, so that each configuration is claimed
    first."""
    candidate_trials: int | None = None
    """If shared: number of trials that the candidate may have in total."""
    heat: bool = False
    """True if it shows what its template is worth beside others of the same round, before the rest of the
    budget goes to the best one."""
    rung: int = Field(default=0, ge=0)
    """Rung of a heat: number of times that the better half of the arms was chosen before."""
    seen: SliceBasis | None = None


class SliceResult(Frozen):
    """Result of a slice."""

    kind: Literal[TaskKind.SLICE] = TaskKind.SLICE
    trials: int = 0
    seconds: float = 0.0
    ended_by: SliceEnd = SliceEnd.LIMIT
    reason: str = ""
    """Reason for rejecting the template; empty if it was not rejected."""
    faults: tuple[RuleFault, ...] = ()
    """The rules for which the template fails, if they were found; without them it holds."""
    refusal: str = ""
    """Reason of the first rejection; empty if no configuration was rejected."""
    sampled: bool = False
    """True if the configurations could not be counted, and the slice searched a random part of them."""


class VerifyPayload(Frozen):
    """Request to measure winners again."""

    kind: Literal[TaskKind.VERIFY] = TaskKind.VERIFY
    pairs: int = Field(default=12, ge=4, le=200)
    seconds: float | None = None
    """Seconds of the budget that the search left; comparisons are made whatever they take."""


class Choice(Frozen):
    """Choice for a workload. Without a candidate the baseline stays."""

    workload: str
    candidate: str | None = None
    configuration: Configuration | None = None
    speedups: dict[str, float] = {}
    """Baseline time divided by this configuration's time on this workload, by key: the low end of the
    verified interval."""
    searched: dict[str, float] = {}
    """The same on other workloads, by key: figures of the search."""


FAULTS = (Stage.LAUNCH, Stage.RUN, Stage.GUARD, Stage.CORRECTNESS, Stage.SANITIZER)
"""Stages at which a configuration falls for what its template does, not for noise or a doubtful clock."""


class Withdrawal(Frozen):
    """A finalist that failed its second check on a workload, and why."""

    words: str = Field(max_length=2000)
    """The reason."""
    candidate: str
    configuration: Configuration
    workload: str
    stage: Stage
    log: str = ""
    """Messages of the compiler."""
    case: FailedCase | None = None
    """Inputs of the launch that failed; None: it was not for a launch."""

    @property
    def is_fault(self) -> bool:
        """True if the template is wrong, so that it may be mended."""
        return self.stage in FAULTS

    def __str__(self) -> str:
        """The text that is shown: workload, configuration, stage and reason."""
        name = configuration_key(self.configuration)
        return f"{self.workload}: {name} {self.stage.value}: {self.words}"[:500]


class VerifyResult(Frozen):
    """The published figures."""

    kind: Literal[TaskKind.VERIFY] = TaskKind.VERIFY
    comparisons: tuple[Comparison, ...]
    choices: tuple[Choice, ...]
    speedup: float
    """Weighted geometric mean over workloads; a workload that keeps its baseline counts as 1."""
    no_gain: tuple[NoGain, ...] = ()
    """Workloads without a comparison, because no trial was faster than the baseline."""
    withdrawn: tuple[Withdrawal, ...] = ()
    """Winners of the search that failed their second check, with the reason."""
    between: tuple[CheckedShape, ...] = ()
    """Secret shapes between workloads on which a choice was right and faster than the baseline."""


Payload = Annotated[
    BaselinePayload
    | CasesPayload
    | ProfilePayload
    | StepPayload
    | ToolPayload
    | SlicePayload
    | VerifyPayload,
    Field(discriminator="kind"),
]
"""Payloads of tasks."""
Result = Annotated[
    BaselineResult | CasesResult | ProfileResult | StepResult | ToolResult | SliceResult | VerifyResult,
    Field(discriminator="kind"),
]
"""Results of tasks."""


def joined(results: Iterable[Result | None]) -> JobBaseline | None:
    """Join the results on the user's kernel: its baseline, the tester's cases, the profiles of candidates.

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
