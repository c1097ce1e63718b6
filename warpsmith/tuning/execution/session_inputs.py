"""Inputs of a session's launches: arguments in numbers, drawn from a seed that nobody else knows."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.by_value_plan import whole_range
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.memory import redrawn_cheaply
from warpsmith.domain.jobs.plan import ArgumentPlan, CaseKey, Family, ScalarPlan, WorkloadPlan, plan_workload
from warpsmith.domain.templates.space import allows
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.tuning.execution.baseline_knowledge import BaselineKnowledge
from warpsmith.tuning.execution.session_ports import Case, as_case
from warpsmith.verify.defences import Defences
from warpsmith.verify.edge_cases import changed_scalar
from warpsmith.verify.element_masks import ElementMask, element_masks

FIRST_OTHER_VARIANT = 1_000
"""Variants below this are those that timings rotate over."""
VARIANT_BITS = 48


@dataclass
class SessionInputs:
    """Inputs of one job on one device.

    Args:
        seed: secret, and perhaps shared by sessions of a job; all inputs are drawn from it and a variant.
        baseline: says in which families the user's kernel is right.
    """

    job: Job
    info: DeviceInfo
    defences: Defences
    seed: int
    baseline: BaselineKnowledge
    _plans: dict[CaseKey, WorkloadPlan] = field(default_factory=dict)
    _others: dict[str, Case] = field(default_factory=dict)
    _masks: dict[CaseKey, Mapping[str, ElementMask]] = field(default_factory=dict)

    @property
    def user_template(self) -> Template:
        """The user's own kernel with the user's own tunables."""
        return Template(kernel=self.job.kernel, space=self.job.space)

    def is_listed(self, workload: Workload) -> bool:
        """True if the job lists a workload of these extents, so that kernels are timed on it."""
        return workload.key in {w.key for w in self.job.workloads}

    def plan(self, of: Workload | Case) -> WorkloadPlan:
        """Arguments of a workload in numbers.

        Raises:
            ExpressionError: a shape or value cannot be evaluated.
        """
        case = as_case(of)
        if case.key not in self._plans:
            scope = self.info.scope() | self.job.space.defaults
            plan = plan_workload(self.job.kernel, case.workload, scope, self.seed)
            if case.family is Family.EDGE_CASE:
                plan = self._other_scalars(plan, case.variant)
            self._plans[case.key] = replace(plan, family=case.family, variant=case.variant)
        return self._plans[case.key]

    def masks(self, of: Workload | Case) -> Mapping[str, ElementMask]:
        """Masks of the elements that count, by name, of outputs of which not all do.

        Raises:
            ExpressionError: a shape, value or condition cannot be evaluated.
        """
        case = as_case(of)
        plan = self.plan(case)
        conditions = [b.kept for b in plan.mutated if b.kept is not None]
        if not conditions:
            return {}
        key = case.key if any(c.inputs for c in conditions) else CaseKey(case.workload.key)
        if key not in self._masks:
            self._masks[key] = element_masks(plan)
        return self._masks[key]

    def forget_masks(self, is_done: Callable[[CaseKey], bool]) -> None:
        """Free the masks of these inputs."""
        for key in [k for k in self._masks if is_done(k)]:
            self._masks.pop(key, None)

    def _other_scalars(self, plan: WorkloadPlan, variant: int) -> WorkloadPlan:
        """The plan with other values of the scalars that the job gives as plain numbers."""
        declared = {a.name: a.value for a in self.job.kernel.arguments}

        def changed(argument: ArgumentPlan) -> ArgumentPlan:
            given = declared.get(argument.name)
            if not isinstance(argument, ScalarPlan) or given is None or given.names:
                return argument
            whole = not argument.dtype.is_float
            value = changed_scalar(argument.value, whole, variant, argument.name)
            if whole and not _holds(argument.dtype, value):
                return argument
            return replace(argument, value=int(value) if whole else value)

        return replace(plan, arguments=tuple(changed(a) for a in plan.arguments))

    def other(self, workload: Workload) -> Case:
        """Inputs beside the workload's own: one random family and variant for the life of the session, unless
        they are replaced."""
        if workload.key not in self._others:
            families = [Family.DECLARED]
            if self.defences.families:
                families += self.baseline.families_of(workload)
            self._others[workload.key] = _drawn_anew(workload, secrets.choice(families))
        return self._others[workload.key]

    def replace_other(self, case: Case) -> None:
        """Have other inputs of the declared distribution from now on where `other` gives these."""
        if self._others.get(case.workload.key) == case:
            self._others[case.workload.key] = _drawn_anew(case.workload, Family.DECLARED)

    def another_draw(self, workload: Workload) -> Case:
        """Other values of the workload's own distribution."""
        return Case(workload, Family.DECLARED, self.other(workload).variant)

    def own_draws(self, workload: Workload) -> list[Case]:
        """The declared draws with which a kernel is checked on a workload: its own, and another one.

        A workload that is too large to be redrawn between timed launches has its own alone, if there is a
        smaller one: what does not depend on its inputs shows there.
        """
        sizes = {w.key: sum(b.size_bytes for b in self.plan(w).buffers) for w in self.job.workloads}
        is_smallest = sizes.get(workload.key) == min(sizes.values())
        if is_smallest or redrawn_cheaply(self.plan(workload)):
            return [Case(workload), self.another_draw(workload)]
        return [Case(workload)]

    def search_gets(self, key: CaseKey) -> bool:
        """True if a search trial may be launched on these inputs."""
        other = self._others.get(key.workload)
        return key.is_own_draw or (other is not None and other.key == key)

    def allowed(
        self, template: Template, kernel: ConfiguredKernel, workloads: Sequence[Workload] | None = None
    ) -> list[Workload]:
        """Workloads, by default of the job, on which the constraints allow this configuration.

        Raises:
            ExpressionError: a constraint cannot be evaluated.
        """
        device = self.info.scope()
        return [
            w
            for w in (self.job.workloads if workloads is None else workloads)
            if allows(template.space.constraints, kernel.scope(w.scope(), device)) is None
        ]


def _holds(dtype: Dtype, value: float) -> bool:
    low, high = whole_range(dtype)
    return low <= value <= high


def _drawn_anew(workload: Workload, family: Family) -> Case:
    """Inputs that no launch had before, although a job's sessions may share their seed."""
    return Case(workload, family, FIRST_OTHER_VARIANT + secrets.randbits(VARIANT_BITS))
