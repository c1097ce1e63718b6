"""A job: one tuning request."""

from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints, ValidationInfo, model_validator

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.draw_checks import check_draw
from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expression_checks import check_names, check_number, check_whole
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.compared_elements import check_mask
from warpsmith.domain.jobs.effort import check_effort
from warpsmith.domain.jobs.known_winner import KnownWinner
from warpsmith.domain.jobs.value_checks import check_values
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.kernels.launch_checks import check_launch
from warpsmith.domain.language import language_named
from warpsmith.domain.plain_data import STORED
from warpsmith.domain.reserved_words import reserved_as_size
from warpsmith.domain.source_text import nesting_problem
from warpsmith.domain.templates.space import Constraint, Parameter, Space
from warpsmith.registry import Kind, named

MAX_KEY_CHARACTERS = 1200
"""Longest `Workload.key` that a database row stores, in characters."""

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]*$", max_length=120, strip_whitespace=True),
]


LabelKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=63)]
LabelValue = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f=]*$", max_length=120)]


class Workload(Frozen):
    """A binding of the kernel's dimensions, with its weight in the objective."""

    dimensions: dict[Identifier, Annotated[int, Field(ge=1, le=2**40)]] = Field(max_length=16)
    weight: float = Field(default=1.0, gt=0, le=1e6)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        for name in self.dimensions if info.context is not STORED else ():
            if words := reserved_as_size(name):
                raise ValueError(f"dimensions: {name!r} {words}; choose another name")
        if len(self.key) > MAX_KEY_CHARACTERS:
            raise ValueError(f"dimensions: names and values have more than {MAX_KEY_CHARACTERS} characters")
        return self

    @cached_property
    def key(self) -> str:
        """`hidden=4096,tokens=512`: names this workload in rows, reports and dispatch tables."""
        return ",".join(f"{k}={v}" for k, v in sorted(self.dimensions.items()))

    def scope(self) -> dict[str, Value]:
        """Dimensions by name, for expressions."""
        return dict(self.dimensions)


class KernelReference(Frozen):
    """The user's own kernel serves as the reference."""

    kind: Literal["kernel"] = "kernel"


class NumpyReference(Frozen):
    """A Python function, run in a sandboxed child on float64 copies of the inputs.

    It is called as `function(inputs, dims)`: `inputs` maps argument names to arrays in the declared
    shape (floats as float64, integers as int64) and scalars to numbers; `dims` maps dimensions to
    integers. It returns a dict with every output and inout argument.
    """

    kind: Literal["numpy"] = "numpy"
    source: str = Field(min_length=1, max_length=64 * 1024)
    function: Identifier = "reference"


Reference = Annotated[KernelReference | NumpyReference, Field(discriminator="kind")]


class Tolerance(Frozen):
    """An element passes if |got - want| <= atol + rtol * |want|. NaN passes only if NaN is wanted."""

    rtol: float = Field(ge=0, le=1)
    atol: float = Field(ge=0, le=1e6)
    share: float = Field(default=0, ge=0, le=0.05)
    """Share of the elements that may fail that, as ties of a rounding do in another order of operations."""
    within: float = Field(default=0, ge=0, le=1e6)
    """Largest |got - want| of such an element."""

    @model_validator(mode="after")
    def _check_share(self) -> Self:
        if self.share and not self.within:
            raise ValueError("share: needs `within`, how far such an element may be off; 1 for integers")
        if self.within and not self.share:
            raise ValueError("within: needs `share`, the share of elements that may be that far off")
        return self


DEFAULT_TOLERANCES: dict[Dtype, Tolerance] = {
    # One step of eight-bit floats, so that a value next to the middle of two may be rounded to either.
    Dtype.FLOAT8_E4M3FN: Tolerance(rtol=0.13, atol=2e-3),
    Dtype.FLOAT8_E4M3FNUZ: Tolerance(rtol=0.13, atol=1e-3),
    Dtype.FLOAT8_E5M2: Tolerance(rtol=0.26, atol=2e-5),
    Dtype.FLOAT8_E5M2FNUZ: Tolerance(rtol=0.26, atol=1e-5),
    Dtype.FLOAT16: Tolerance(rtol=2e-3, atol=1e-3),
    Dtype.BFLOAT16: Tolerance(rtol=1.6e-2, atol=1e-2),
    Dtype.FLOAT32: Tolerance(rtol=1e-4, atol=1e-5),
    Dtype.FLOAT64: Tolerance(rtol=1e-9, atol=1e-10),
}
EXACT = Tolerance(rtol=0, atol=0)


class CacheState(StrEnum):
    """State of the caches during timing: inputs in device memory (`cold`) or in the last-level cache
    (`hot`)."""

    COLD = "cold"
    HOT = "hot"


class Metric(StrEnum):
    """The cost of a launch that is minimised."""

    TIME = "time"
    ENERGY = "energy"
    """The search minimises energy. The three configurations with the least energy are verified; of those that
    are no slower than the baseline, the one with the least energy is served."""


class Objective(Frozen):
    """The objective: the weighted geometric mean, over workloads, of cost divided by baseline cost."""

    metric: Metric = Metric.TIME
    cache: CacheState = CacheState.COLD
    configurations: int | None = Field(default=None, ge=1, le=64)
    """Limit on the number of different configurations in the dispatch table. They are chosen so that together
    they serve all workloads best. None: every workload gets its own best configuration."""
    energy: bool = False
    """If true, verification also measures the energy of winners and of the baseline, about 6 s a workload. If
    `metric` is `energy`, it always does."""

    @property
    def measures_energy(self) -> bool:
        """True if verification measures energy."""
        return self.energy or self.metric is Metric.ENERGY


class Budget(Frozen):
    """Limits of a job's spending. The job ends at the first limit that it reaches."""

    rounds: int = Field(default=1, ge=1, le=50)
    trials: int = Field(default=100, ge=1, le=100_000)
    """Configurations tried over all rounds, failed ones included."""
    seconds: float = Field(default=600, gt=0, le=7 * 86400)
    tokens: int = Field(default=0, ge=0, le=10**9)
    """Model tokens, prompts and replies together. 0: no model is called."""
    usd: float = Field(default=0, ge=0, le=10**5)
    """Cost of model calls in USD, by the operator's prices."""
    stop_early: bool = True
    """If true, the job ends before its budget is spent once no gain above the noise is expected, and a trial
    ends before its last workload once its first workloads show no promise."""


class SearcherName(StrEnum):
    """Search algorithms that choose configurations."""

    DEFAULT = "default"
    RANDOM = "random"
    GRID = "grid"
    TPE = "tpe"
    LOCAL = "local"
    SHAPES = "shapes"
    """A trial is one configuration on one workload, and every workload gets a winner of its own."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """Member for a searcher of an extension; None if none is registered under this name."""
        if not isinstance(value, str) or value not in named(Kind.SEARCHER):
            return None
        added = str.__new__(cls, value)
        added._name_, added._value_ = value, value
        return added


if TYPE_CHECKING:
    RuleName = str
else:
    # A literal, so that a wrong name is refused with all names, and the schema lists them.
    RuleName = Literal[(*named(Kind.RULE), *named(Kind.LAST_RULE))]
"""Name of a registered rewrite rule."""


class RewritePolicy(Frozen):
    """Selection of rewrite rules. An empty `allow` permits all of them."""

    enabled: bool = True
    allow: tuple[RuleName, ...] = ()
    deny: tuple[RuleName, ...] = ()

    def permits(self, rule: str) -> bool:
        """True if the lists allow a rule; `enabled` says whether rules are used at all."""
        return rule not in self.deny and (not self.allow or rule in self.allow)


class Strategy(StrEnum):
    """Ways of finding a faster kernel."""

    TEMPLATE = "template"
    """Agents write templates and a search sets their parameters."""
    DIRECT = "direct"
    """Agents rewrite the kernel once per round, without parameters and without a search. For comparison."""
    SEARCH = "search"
    """The user's own parameters and the lifted constants are searched; no agent is asked. For comparison."""


ProviderName = Literal["rules", "openai", "external"]
"""Providers that may answer an agent step."""
RULES: ProviderName = "rules"
"""The provider that needs no model."""
AgentRole = Literal["tester", "profiler", "planner", "templater", "tuner", "repairer"]
"""Roles of agents."""


class AgentPolicy(Frozen):
    """Selection of the providers that answer agent steps."""

    provider: ProviderName | None = None
    """`rules` (built in, offline), `openai` (the operator's model) or `external` (over this API). None: the
    operator's choice."""
    roles: dict[AgentRole, ProviderName] = {}
    """Providers that differ from `provider`, by role."""
    parents: int = Field(default=1, ge=1, le=8)
    """Number of best candidates from which each round after the first starts; those of different ideas come
    first."""
    ideas: int = Field(default=1, ge=1, le=8)
    """Number of templates that differ in kind for which a planner may ask in each branch of a round. The
    trials go to those that earn them."""
    tools: int = Field(default=0, ge=0, le=64)
    """Number of tool calls that an agent may make for each template before it answers; 0: none."""


class Job(Frozen):
    """A tuning request: kernel, workloads, objective, budget."""

    name: Name
    kernel: Kernel
    workloads: tuple[Workload, ...] = Field(min_length=1, max_length=64)
    reference: Reference = KernelReference()
    tolerances: dict[Identifier, Tolerance] = Field(default={}, max_length=64)
    """Tolerances by argument name. Default: by dtype and by the output's values; integers must be equal."""
    non_finite: bool = False
    """True if inputs may hold not-a-number and infinity. Candidates must then treat them as the user's
    kernel does where it agrees with its reference."""
    parameters: tuple[Parameter, ...] = Field(default=(), max_length=32)
    """The user's own parameters: macros that the source already uses."""
    constraints: tuple[Constraint, ...] = Field(default=(), max_length=64)
    rewrite: RewritePolicy = RewritePolicy()
    agents: AgentPolicy = AgentPolicy()
    strategy: Strategy = Strategy.TEMPLATE
    searcher: SearcherName = SearcherName.DEFAULT
    known_winners: tuple[KnownWinner, ...] = Field(default=(), max_length=1000)
    """What won on kernels like this one; a search over shapes begins where that is likely to win."""
    objective: Objective = Objective()
    budget: Budget = Budget()
    operations: Expression | None = None
    """Least number of floating-point operations of a launch, over the dimensions; used for the roofline."""
    bytes: Expression | None = None
    """Bytes that a launch must read and write in memory, over the dimensions; used for the floor. None: all
    buffers once, in-out buffers twice."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the search order only. Seeds of inputs are secret; the verification has one of its own."""
    labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=16)
    """The user's own labels (`model: llama`, `team: serving`), by which lists of jobs can be filtered."""

    _checked: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _complete_for_the_language(cls, data: Any) -> Any:
        kernel = data.get("kernel") if isinstance(data, dict) else None
        language = language_named(kernel.get("backend")) if isinstance(kernel, dict) else None
        if language is None:
            return data
        return {**data, "kernel": language.complete_in_job(kernel, data.get("parameters"))}

    @property
    def space(self) -> Space:
        """The space of the user's own parameters and constraints."""
        return Space(parameters=self.parameters, constraints=self.constraints)

    def operations_of(self, workload: Workload) -> float:
        """Floating-point operations of a launch; 0 if the job does not give them."""
        return 0.0 if self.operations is None else max(0.0, float(self.operations.evaluate(workload.scope())))

    def bytes_of(self, workload: Workload) -> int | None:
        """Bytes that a launch must move; None if the job does not give them."""
        return None if self.bytes is None else self.bytes.integer(workload.scope())

    def tolerance(self, name: str, dtype: Dtype) -> Tolerance:
        """Tolerance of one mutated argument. Default: the tolerance for elements of size 1."""
        return self.tolerances.get(name) or DEFAULT_TOLERANCES.get(dtype, EXACT)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        # This runs again wherever a job becomes a part of another value.
        if self._checked or info.context is STORED:
            self._checked = True
            return self
        problem = nesting_problem(self.kernel.source or "")
        if problem:
            raise ValueError(f"kernel.source: {problem}")
        self._check_dimensions()
        self._check_energy()
        mutated = {a.name for a in self.kernel.declared if a.is_mutated}
        for name in self.tolerances:
            if name not in mutated:
                raise ValueError(f"tolerances.{name}: no output or inout argument has that name")
        self._checked = True
        return self

    def _check_energy(self) -> None:
        if not self.objective.measures_energy:
            return
        for_it = self.objective.metric is Metric.ENERGY
        field, instead = ("metric", "use time") if for_it else ("energy", "use false")
        if self.kernel.launches:
            raise ValueError(f"objective.{field}: the energy of a sequence is not measured yet; {instead}")
        if not self.kernel.backend.language.runs_on_nvidia:
            backend = self.kernel.backend.value
            raise ValueError(f"objective.{field}: {backend} reports no energy; {instead}, or backend cuda")
        for argument in self.kernel.declared:
            if argument.role is Role.INOUT:
                words = "restoring it between launches would count"
                raise ValueError(f"objective.{field}: {argument.name} is inout, and {words}; {instead}")
            if argument.kept is not None:
                words = "overwriting it between launches would count"
                raise ValueError(f"objective.{field}: {argument.name} has `kept`, and {words}; {instead}")

    def _check_dimensions(self) -> None:
        names = set(self.workloads[0].dimensions)
        for i, workload in enumerate(self.workloads):
            if set(workload.dimensions) != names:
                raise ValueError(f"workloads.{i}.dimensions: must name {sorted(names)}, as the first does")
        if len({w.key for w in self.workloads}) != len(self.workloads):
            raise ValueError("workloads: the same dimensions are listed twice")
        self._check_parameters(names)
        given = {"operations": self.operations, "bytes": self.bytes}
        efforts = {name: expression for name, expression in given.items() if expression is not None}
        for name, expression in efforts.items():
            check_names(name, expression, names)
        known = names | {p.name for p in self.parameters}
        for i, constraint in enumerate(self.constraints):
            check_names(f"constraints.{i}.expression", constraint.expression, known)
        check_effort(self.kernel, efforts.values(), len(self.workloads))
        for i, workload in enumerate(self.workloads):
            self._evaluate_all(i, workload)

    def _check_parameters(self, dimensions: set[str]) -> None:
        declared = [p.name for p in self.parameters]
        clash = dimensions & set(declared)
        if clash:
            raise ValueError(f"parameters: {sorted(clash)} are dimensions as well; rename one")
        for i, name in enumerate(declared):
            if name in declared[:i]:
                raise ValueError(f"parameters.{i}.name: parameter {name} is declared twice")
        self._check_known_winners(dimensions, declared)

    def _check_known_winners(self, dimensions: set[str], declared: list[str]) -> None:
        for i, winner in enumerate(self.known_winners):
            for field, given, known in (
                ("configuration", winner.configuration, declared),
                ("dimensions", winner.dimensions, dimensions),
            ):
                if unknown := sorted(set(given) - set(known)):
                    raise ValueError(
                        f"known_winners.{i}.{field}: {', '.join(unknown)} is none of {sorted(known)}"
                    )

    def _evaluate_all(self, index: int, workload: Workload) -> None:
        scope = workload.scope() | self.space.defaults
        for place, argument in self.kernel.placed():
            where = f"kernel.{place}"
            for m, extent in enumerate(argument.shape):
                check_whole(f"{where}.shape.{m}", extent, scope, index, lowest=1)
            check_values(self.kernel, argument, where, scope, index)
            if argument.draw is not None:
                check_draw(f"{where}.draw", argument.draw, argument.dtype, argument.shape, scope, index)
            check_mask(self.kernel, argument, where, scope, index)
        for place, launch in self.kernel.placed_launches():
            check_launch(launch, f"kernel.{place}", scope, index)
        if self.operations is not None:
            check_number("operations", self.operations, scope, index)
        if self.bytes is not None:
            check_whole("bytes", self.bytes, scope, index, lowest=1)
