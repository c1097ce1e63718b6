"""Bounds of a template's space before its search, and configurations to begin with. Pure.

Device limits become constraints if the template's launch or arrays could exceed them, and compiler reports do
so because of registers or spills. The first configurations are the parent's best, and the launch that fills
the device best by its limits alone.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from agents.context import StepContext
from agents.contracts import ConstraintText, TunerReply, ValueOf
from agents.parsing import BadReply
from agents.questions.role_inputs import facts
from agents.replies.constraint_checks import forbidden_by
from agents.replies.reply_acceptance import accept_region
from agents.rules.conclusions import narrowed
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.expressions import Expression, Value
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.launch_size import evaluated
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration, Constraint, Parameter, holds
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ExpressionError
from warpsmith.measure.occupancy import occupancy
from warpsmith.source.lexing.tokens import without_comments
from warpsmith.tuning.analysis.search_facts import best_of
from warpsmith.tuning.tasks import BaselineResult, StepPayload, StepResult

MOST_LOOKS = 1000
"""Limit on the configurations examined for one question; beyond it a limit is adopted unexamined."""
USUAL_THREADS = 256
ENOUGH_OCCUPANCY = 0.5
"""Occupancy above which more resident warps seldom hide more latency."""
SPILLED_AFTER = 4
"""Number of trials with a value, all of which spilled, after which the value is excluded."""
_SIZES = {"char": 1, "short": 2, "half": 2, "int": 4, "float": 4, "long": 8, "double": 8}
_ARRAY = re.compile(
    r"\b(?:__local|__shared__)\s+(?:unsigned\s+|u)?("
    + "|".join(_SIZES)
    + r")(2|4|8|16)?\s+\w+\s*((?:\[[^\]]+\])+)\s*;"
)


def bounded(payload: StepPayload, context: StepContext) -> StepResult:
    """The draft with the additions of `region`, checked like any tuner's reply."""
    draft = payload.draft
    assert draft is not None, "decide hands the draft to the tuner"
    reply = region(draft, context)
    notes: tuple[str, ...] = ()
    try:
        template = accept_region(reply, payload, context)
    except BadReply as exc:
        template, notes = draft, (f"the region is left as it was: {exc}"[:2000],)
    said = reply.model_dump_json()
    return StepResult(provider="rules", template=template, declined=payload.declined, reply=said, notes=notes)


def region(draft: Template, context: StepContext) -> TunerReply:
    """Constraints and first configurations that the draft lacks; both may be empty."""
    if context.baseline is None or context.job.kernel.backend.language.is_recorded:
        return TunerReply()
    device = context.baseline.device
    fresh: list[Constraint] = []
    for constraint in (*_limits(draft, context), *_reported(draft, context)):
        known = (*draft.space.constraints, *fresh)
        if constraint.expression not in {c.expression for c in known} and _excludes(
            constraint, known, draft, context.job.workloads, device
        ):
            fresh.append(constraint)
    space = draft.space.model_copy(update={"constraints": (*draft.space.constraints, *fresh)})
    told = [draft.space.defaults, *draft.warm_starts]
    first = []
    for configuration in (_inherited(draft, context), _filling(draft, context, space.constraints)):
        if configuration is not None and configuration not in told:
            told.append(configuration)
            first.append(configuration)
    return TunerReply(
        constraints=tuple(ConstraintText(expression=c.expression.text, reason=c.reason) for c in fresh),
        warm_starts=tuple(tuple(ValueOf(name=n, value=v) for n, v in c.items()) for c in first),
    )


def _limits(draft: Template, context: StepContext) -> Iterator[Constraint]:
    """Constraints from device limits, for launches and arrays that depend on parameters."""
    launch = draft.kernel.launch
    names = {p.name for p in draft.space.parameters}
    threads = " * ".join(f"({e.text})" for e in launch.block)
    registers = _registers(draft, context)
    wanted = [(threads, "device.max_threads_per_block", "threads of a block")]
    wanted += [
        (e.text, f"device.max_block_{a}", f"block along {a}")
        for e, a in zip(launch.block, "xyz", strict=False)
    ]
    wanted += [
        (e.text, f"device.max_grid_{a}", f"grid along {a}") for e, a in zip(launch.grid, "xyz", strict=False)
    ]
    shared = launch.shared_bytes.text
    wanted += [(shared, "device.max_shared_per_block", "dynamic shared memory")]
    local = " + ".join(a.bytes_expression.text for a in draft.kernel.local_arguments)
    wanted += [(local, "device.max_shared_per_block", "local arguments")] if local else []
    wanted += [(a, "device.max_shared_per_block", "an array in shared memory") for a in _arrays(draft)]
    if registers:
        reason = f"the compiler reports {registers} registers a thread"
        wanted += [(f"{threads} * {registers}", "device.registers_per_block", reason)]
    for text, limit, reason in wanted:
        try:
            expression = Expression(f"{text} <= {limit}")
        except ExpressionError:
            continue
        if expression.names & names:
            yield Constraint(expression=expression, reason=reason)


def _arrays(draft: Template) -> Iterator[str]:
    """Bytes of every static array in shared memory whose extents are given by the source alone."""
    source = without_comments(draft.kernel.text)
    if re.search(r"^\s*#\s*(if|else|elif)", source, re.MULTILINE):
        return  # not all that is written is compiled
    known = {p.name for p in draft.space.parameters}
    for kind, width, extents in _ARRAY.findall(source):
        texts = re.findall(r"\[([^\]]+)\]", extents)
        try:
            plain = all(Expression(t).names <= known for t in texts)
        except ExpressionError:
            continue
        if plain and not any("/" in t for t in texts):
            yield " * ".join([str(_SIZES[kind] * int(width or 1)), *(f"({t})" for t in texts)])


def _registers(draft: Template, context: StepContext) -> int | None:
    """The fewest registers that the compiler reported; None if launch bounds force fewer."""
    assert context.baseline is not None
    if "__launch_bounds__" in draft.kernel.text:
        return None
    own = context.baseline.facts.registers
    seen = [r for _, o in _same_source(draft, context) if (r := o.facts.registers if o.facts else None)]
    return min([*seen, *([own] if own else [])], default=None)


def _same_source(draft: Template, context: StepContext) -> Sequence[tuple[Configuration, Outcome]]:
    """Trials that apply to this draft, because their parent has the same text."""
    same = context.parent is not None and context.parent.kernel.text == draft.kernel.text
    return context.trials if same else ()


def _reported(draft: Template, context: StepContext) -> Iterator[Constraint]:
    """Constraints on values that never worked, and on values with which the compiler always spilled
    registers."""
    trials = _same_source(draft, context)
    if not trials:
        return
    found = narrowed(draft.space, facts(context)).constraints[len(draft.space.constraints) :]
    yield from found
    best = best_of(trials)
    for parameter in draft.space.parameters:
        kept = {parameter.baseline_value, best[0].get(parameter.name) if best is not None else None}
        spilled: dict[int, list[bool]] = {}
        for configuration, outcome in trials:
            value = configuration.get(parameter.name)
            if outcome.facts is not None and isinstance(value, int) and not isinstance(value, bool):
                spilled.setdefault(value, []).append(bool(outcome.facts.spill_bytes))
        if all(all(s) for s in spilled.values()):
            continue
        for value, seen in sorted(spilled.items()):
            if value not in kept and all(seen) and len(seen) >= SPILLED_AFTER:
                reason = f"the compiler spilled registers in all {len(seen)} configurations with it"
                yield Constraint(expression=Expression(f"{parameter.name} != {value}"), reason=reason)


def _excludes(
    constraint: Constraint,
    known: Sequence[Constraint],
    draft: Template,
    workloads: Sequence[Workload],
    device: DeviceInfo,
) -> bool:
    """True if a constraint allows the defaults and forbids something that the known constraints allow."""
    names = constraint.expression.names
    varied = [p for p in draft.space.parameters if p.name in names]
    if not names & set(workloads[0].dimensions):
        workloads = workloads[:1]
    within = names | set(workloads[0].dimensions) | set(device.scope())
    relevant = tuple(c for c in known if c.expression.names <= within)
    scopes = [{**device.scope(), **w.scope(), **draft.space.defaults} for w in workloads]
    if not any(holds((constraint,), s) for s in scopes):
        return False
    if math.prod(len(p.values) for p in varied) * len(scopes) > MOST_LOOKS:
        return True
    looks = ({**scope, **chosen} for chosen in _choices(varied) for scope in scopes)
    return any(holds(relevant, look) and not holds((constraint,), look) for look in looks)


def _choices(varied: Sequence[Parameter]) -> Iterator[Configuration]:
    """Every combination of the values of parameters."""
    for values in itertools.product(*(p.values for p in varied)):
        yield dict(zip((p.name for p in varied), values, strict=True))


def _inherited(draft: Template, context: StepContext) -> Configuration | None:
    """The parent's best configuration, as far as the draft has the same values."""
    best = best_of(context.trials)
    if best is None:
        return None
    chosen = dict(draft.space.defaults)
    for parameter in draft.space.parameters:
        value = best[0].get(parameter.name)
        if any(v == value and type(v) is type(value) for v in parameter.values):
            chosen[parameter.name] = value  # type: ignore[assignment]
    return None if forbidden_by(draft.space.constraints, chosen, context) else chosen


def _filling(
    draft: Template, context: StepContext, constraints: tuple[Constraint, ...]
) -> Configuration | None:
    """The allowed launch on the heaviest workload that leaves the least of the device idle.

    All other values come from the first warm start of the templater, or from the defaults.
    """
    assert context.baseline is not None
    device, launch = context.baseline.device, draft.kernel.launch
    extents = (*launch.grid, *launch.block)
    varied = [p for p in draft.space.parameters if any(p.name in e.names for e in extents)]
    if not varied or math.prod(len(p.values) for p in varied) > MOST_LOOKS // 4:
        return None
    workload = max(context.job.workloads, key=lambda w: w.weight)
    usual = draft.warm_starts[0] if draft.warm_starts else draft.space.defaults
    ranked: list[tuple[tuple[float, ...], Configuration]] = []
    for chosen in (usual | choice for choice in _choices(varied)):
        scope = {**device.scope(), **workload.scope(), **chosen}
        filled = _filled(draft.kernel, context.baseline, scope) if holds(constraints, scope) else None
        if filled is not None:
            ranked.append(((*filled, -sum(chosen[n] != usual[n] for n in usual)), chosen))
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


def _filled(kernel: Kernel, baseline: BaselineResult, scope: Mapping[str, Value]) -> tuple[float, ...] | None:
    """Fill of the device by a launch; a larger tuple is better. None if it cannot be launched."""
    device, launch = baseline.device, kernel.launch
    try:
        threads = math.prod(e.integer(scope) for e in launch.block)
        blocks = math.prod(e.integer(scope) for e in launch.grid)
        shared = evaluated(kernel, scope).dynamic_bytes
    except ExpressionError:
        return None
    if threads < 1 or blocks < 1:
        return None
    held = occupancy(device.architecture, threads, baseline.facts.registers or 0, shared)
    far = abs(math.log2(threads / USUAL_THREADS))
    busy = min(1.0, blocks / device.limits.multiprocessors)
    return busy, ENOUGH_OCCUPANCY if held is None else min(held, ENOUGH_OCCUPANCY), -far
