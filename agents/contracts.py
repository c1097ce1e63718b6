"""Input and reply of each role. The JSON schema of a reply is generated from these classes."""

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    model_serializer,
)

from warpsmith.domain.base import Fenced, Frozen
from warpsmith.domain.jobs.job import AgentRole
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.domain.templates.space import Configuration
from warpsmith.tuning.analysis.search_facts import Facts
from warpsmith.tuning.tasks import Bottleneck, Profile, ToolName

Text = Field(default="", max_length=8000)
PlainValue = StrictBool | StrictInt | StrictFloat | StrictStr


def _as_text(value: Any) -> Any:
    """A number as the text of an expression; any other value unchanged."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if plain else value


ExpressionText = Annotated[
    str,
    BeforeValidator(_as_text),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "string"}]}),
]
"""An expression or a number, as in a job."""


class ParameterText(Frozen):
    """A tunable: a macro that the source uses and the values it may take."""

    name: str
    values: tuple[PlainValue, ...] = Field(min_length=1, max_length=64)
    default: PlainValue
    """Value with which the template behaves as the user's kernel."""
    meaning: str = Field(default="", max_length=500)


class ConstraintText(Frozen):
    """A condition on configurations: an expression over parameters, dimensions and `device.` limits."""

    expression: ExpressionText = Field(max_length=500)
    reason: str = Field(default="", max_length=500)


class KernelInput(Frozen):
    """The user's kernel, without its comments."""

    backend: str
    entry: str
    source: str
    arguments: tuple[str, ...]
    """One text per argument, `name: role dtype[shape]` with how it is drawn, in the kernel's order."""
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared_bytes: str
    attributes: str
    """Attributes of the launch: `cooperative`, `cluster (2, 1, 1)`; empty: none."""
    cache: str
    """State of the last-level cache in which launches are timed: `cold` or `hot`."""
    tolerances: dict[str, str]
    """Tolerance of each output against the reference, in words, by argument."""
    constraints: tuple[ConstraintText, ...] = ()
    """Constraints of the job, which every configuration keeps."""
    checked: str = ""
    """Shapes and inputs beside the workloads on which a candidate must be right."""
    compiler: tuple[str, ...] = ()
    """Compiler, language and headers, and what a launch may do."""
    options: tuple[str, ...] = ()
    """Options of the compiler, which stay as they are."""
    headers: tuple[str, ...] = ()
    """Headers that the source may include, beside those of the compiler."""
    launches: tuple[str, ...] = ()
    """Of a sequence: one text per launch, in order, which stay as they are. The fields above have the
    first."""
    workloads: tuple[str, ...]
    """One text per workload, such as `hidden=4096,tokens=512 (weight 1)`."""


class TemplateInput(Frozen):
    """An earlier template."""

    source: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared_bytes: str
    attributes: str = ""
    """As those of `KernelInput`."""
    parameters: tuple[ParameterText, ...]
    constraints: tuple[ConstraintText, ...]
    applied: tuple[str, ...] = ()
    """Rewrite rules applied in it."""


class TrialInput(Frozen):
    """A measured configuration. An objective below 1 is faster than the user's kernel."""

    configuration: Configuration
    objective: float


class TesterInput(Frozen):
    """Input of the tester: the kernel, and the cases with which candidates are already checked."""

    kernel: KernelInput
    device: dict[str, int | str]
    workloads: tuple[str, ...]
    """Keys of the listed workloads, as the reply must name them."""
    shapes: tuple[str, ...]
    """Other shapes that are already checked."""
    families: dict[str, tuple[str, ...]]
    """Families of inputs that are already checked, by workload."""


class ProfilerInput(Frozen):
    """Input of the profiler: the kernel to start from and its measurements."""

    round: int
    kernel: KernelInput
    device: dict[str, int | str]
    parent: TemplateInput | None
    facts: Facts | None
    readings: tuple[str, ...] = ()
    """The facts in sentences, and what follows from them."""


class PlannerInput(Frozen):
    """Input of the planner."""

    round: int
    kernel: KernelInput
    device: dict[str, int | str]
    facts: Facts | None
    readings: tuple[str, ...] = ()
    """The facts in sentences, and what follows from them."""
    profile: Profile | None
    """The profiler's reply."""
    baseline_us: dict[str, float]
    parent: TemplateInput | None
    best: tuple[TrialInput, ...]
    worst: tuple[TrialInput, ...]
    rejections: dict[str, int]
    """Number of rejected trials by stage and reason."""
    earlier: tuple[str, ...] = ()
    """What earlier jobs on this kernel or one like it taught. Left out if there is nothing."""
    example: TemplateInput | None = None
    """The template that gained most there. Left out if there is none."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, others: SerializerFunctionWrapHandler) -> dict[str, Any]:
        shown: dict[str, Any] = others(self)
        left_out = [name for name in ("earlier", "example", "cards") if not shown.get(name)]
        return {name: value for name, value in shown.items() if name not in left_out}


class IdeasInput(PlannerInput):
    """Input of the planner if it may name several ideas: that for one, and what they are measured against."""

    ideas: int
    """Number of ideas that may be named at most."""
    tried: str
    """What was tried in this job and what it gave, with the names of the ideas."""


class CallInput(Frozen):
    """A tool that was used, and what it said."""

    tool: ToolName
    draft: str
    """Name of the template that it was used on; empty if it needs none."""
    configurations: tuple[Configuration, ...]
    ok: bool
    answer: str
    seconds: float
    """Seconds that it took."""


class TemplaterInput(PlannerInput):
    """Input of the templater: that of the planner, and the plan."""

    plan: str
    cards: tuple[str, ...] = ()
    """Facts of the device's architecture that concern this kernel. Left out if there are none."""
    rules: tuple[str, ...]
    """Rewrite rules that the reply may name instead of source."""
    parameters_wanted: bool
    """False if no search follows: every value stands in the source and `parameters` stays empty."""
    tools: int = 0
    """Number of tool calls that may still be made before the answer."""
    tool_seconds: float = 0.0
    """Seconds that they may take together."""
    drafts: dict[str, TemplateInput] = {}
    """Templates that were given to tools so far, by name."""
    calls: tuple[CallInput, ...] = ()
    """Tools that were used so far, in order."""


class RepairerInput(TemplaterInput):
    """Input of the repairer: that of the templater, and the failed template."""

    rejected: TemplateInput | None
    failure: str
    log: str


class TunerInput(Frozen):
    """Input of the tuner: the template that is about to be searched, and the device."""

    device: dict[str, int | str]
    workloads: tuple[str, ...]
    template: TemplateInput
    registers: int | None
    spill_bytes: int | None
    static_shared_bytes: int | None


StepInput = (
    TesterInput | ProfilerInput | PlannerInput | IdeasInput | TemplaterInput | RepairerInput | TunerInput
)


class ValueOf(Frozen):
    """One parameter set to a value."""

    name: str
    value: PlainValue


class ExtentOf(Frozen):
    """One dimension."""

    name: str
    extent: StrictInt = Field(ge=1, le=2**31)


class ShapeText(Frozen):
    """A shape to check, close in size to the listed ones."""

    dimensions: tuple[ExtentOf, ...] = Field(max_length=16)
    """A value for every dimension."""
    reason: str = Field(default="", max_length=500)


OtherFamily = Literal["scaled_up", "scaled_down", "zeros", "sparse", "sorted", "spike", "repeated", "wide"]


class FamilyText(Frozen):
    """Inputs of a family for a listed workload."""

    workload: str
    """Key of the workload."""
    family: OtherFamily
    reason: str = Field(default="", max_length=500)


class TesterReply(Frozen):
    """Further cases to check candidates with. A case counts only if the user's own kernel is right on it."""

    shapes: tuple[ShapeText, ...] = Field(default=(), max_length=8)
    families: tuple[FamilyText, ...] = Field(default=(), max_length=8)
    reasoning: str = Text


class ProfilerReply(Frozen):
    """The bound of the kernel, and what to change."""

    bottleneck: Bottleneck
    hypotheses: tuple[str, ...] = Field(default=(), max_length=8)
    """Changes and their reasons, most promising first."""
    reasoning: str = Text


class PlannerReply(Frozen):
    """The next thing to try, or the statement that nothing is worth trying."""

    stop: str = Text
    """Reason to end the search; empty to continue."""
    plan: str = Text
    """Task for the templater; empty only with `stop`."""
    expected_gain: float | None = Field(default=None, ge=0, le=1000)
    """Expected speed-up over the best so far: 1.2 for a fifth faster; null if unknown."""


IdeaName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]*$", max_length=40)]


class IdeaText(Frozen):
    """One way to make the kernel faster."""

    name: IdeaName
    """Two or three words; the name of an earlier idea if this one goes on with it."""
    sentence: str = Field(min_length=1, max_length=300)
    """How it differs in kind from the others."""
    plan: str = Field(min_length=1, max_length=8000)
    """Task for the templater, complete in itself."""
    expected_gain: float | None = Field(default=None, ge=0, le=1000)
    """Expected speed-up over the best so far: 1.2 for a fifth faster; null if unknown."""


class IdeasReply(Frozen):
    """Ideas to try side by side, or the statement that nothing is worth trying."""

    stop: str = Text
    """Reason to end the search; empty to continue."""
    ideas: tuple[IdeaText, ...] = Field(default=(), max_length=8)
    """Ideas that differ in kind, most promising first; empty only with `stop`."""
    reasoning: str = Text


class TemplateReply(Frozen):
    """A template: either names of rewrite rules, or source with its parameters and launch."""

    rules: tuple[str, ...] = Field(default=(), max_length=32)
    """Rewrite rules to apply to the user's kernel; empty if `source` is given."""
    source: Annotated[str, Fenced(unless=("rules", "draft"))] = Field(default="", max_length=MAX_SOURCE_BYTES)
    """The whole source, with parameters as macros that it does not define; empty if `rules` are named."""
    draft: str = Field(default="", max_length=16)
    """Name of a template that was given to a tool before, in place of rules or source and of all that belongs
    to them but `warm_starts`."""
    parameters: tuple[ParameterText, ...] = Field(default=(), max_length=32)
    constraints: tuple[ConstraintText, ...] = Field(default=(), max_length=64)
    grid: tuple[ExpressionText, ...] = Field(default=(), max_length=3)
    """Blocks along x, y, z as expressions; empty to keep the user's."""
    block: tuple[ExpressionText, ...] = Field(default=(), max_length=3)
    """Threads along x, y, z as expressions; empty to keep the user's."""
    shared_bytes: ExpressionText = Field(default="", max_length=500)
    """Dynamic shared memory as an expression; empty to keep the user's."""
    cluster: tuple[ExpressionText, ...] = Field(default=(), max_length=3)
    """CUDA from sm_90 on: blocks of a cluster along x, y, z as expressions; empty to keep the user's."""
    cooperative: bool = False
    """CUDA: true if all blocks must be on the device at once, so that they can wait for each other."""
    warm_starts: tuple[tuple[ValueOf, ...], ...] = Field(default=(), max_length=16)
    """Configurations to try first, the most promising one first; each sets every parameter."""
    reasoning: str = Text


class CallText(Frozen):
    """A tool to use."""

    tool: ToolName
    draft: str = Field(default="", max_length=16)
    """Name of a template that an earlier call gave; empty if `template` gives a new one or none is needed."""
    template: TemplateReply | None = None
    """A new template, which gets the next name: `d0`, `d1` and so on."""
    configurations: tuple[tuple[ValueOf, ...], ...] = Field(default=(), max_length=6)
    """Configurations of the template, each of which sets every parameter; empty: its defaults."""


class CallsReply(Frozen):
    """Tools to use before answering."""

    calls: tuple[CallText, ...] = Field(min_length=1, max_length=8)
    reasoning: str = Text


class TunerReply(Frozen):
    """The region worth searching, and the configurations to begin with."""

    constraints: tuple[ConstraintText, ...] = Field(default=(), max_length=32)
    """Constraints added to those of the template; they must allow the defaults."""
    warm_starts: tuple[tuple[ValueOf, ...], ...] = Field(default=(), max_length=32)
    """Configurations to try first; each sets every parameter."""
    reasoning: str = Text


Reply = TesterReply | ProfilerReply | PlannerReply | IdeasReply | TemplateReply | TunerReply

REPLIES: dict[AgentRole, type[Reply]] = {
    "tester": TesterReply,
    "profiler": ProfilerReply,
    "planner": PlannerReply,
    "templater": TemplateReply,
    "repairer": TemplateReply,
    "tuner": TunerReply,
}


def reply_of(role: AgentRole, ideas: int = 1) -> type[Reply]:
    """The class of a role's answer.

    Args:
        ideas: number of ideas that a planner may name.
    """
    return IdeasReply if role == "planner" and ideas > 1 else REPLIES[role]


def reply_schema(role: AgentRole, tools: int = 0, ideas: int = 1) -> dict[str, Any]:
    """The JSON schema of a role's answer.

    Args:
        tools: number of tool calls that may be made in place of an answer.
        ideas: see `reply_of`.
    """
    if not tools:
        return reply_of(role, ideas).model_json_schema()
    either: Any = reply_of(role, ideas) | CallsReply
    return TypeAdapter(either).json_schema()


def strict_schema(role: AgentRole, ideas: int = 1) -> dict[str, Any]:
    """The schema of `reply_schema` as structured output requires it: every field required, no bounds."""
    schema = _strict(reply_schema(role, ideas=ideas))
    assert isinstance(schema, dict)
    return schema


_BOUNDS = {"default", "title", "minItems", "maxItems", "maxLength", "minLength", "minimum", "maximum"}


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    fields = node.get("properties")
    if isinstance(fields, dict):
        named = {name: _strict(field) for name, field in fields.items()}
        rest = {k: _strict(v) for k, v in node.items() if k not in _BOUNDS | {"properties", "required"}}
        return rest | {"properties": named, "required": list(fields), "additionalProperties": False}
    return {
        k: {n: _strict(d) for n, d in v.items()} if k == "$defs" else _strict(v)
        for k, v in node.items()
        if k not in _BOUNDS
    }
