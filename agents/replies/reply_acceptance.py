"""Turns replies into results, and checks every rule that a reply must keep.

Pure, so that a reply means the same on arrival, when its step continues, and in a replay.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.context import StepContext
from agents.contracts import (
    CallsReply,
    CallText,
    IdeasReply,
    PlannerReply,
    ProfilerReply,
    Reply,
    TemplateReply,
    TesterReply,
    TunerReply,
    ValueOf,
    reply_of,
)
from agents.parsing import BadReply, parse_reply
from agents.questions.role_inputs import drafts, permitted_rules
from agents.questions.tried import history
from agents.replies.constraint_checks import forbidden_by
from agents.replies.fixed_template import fixed, typical
from warpsmith.domain.expression_checks import DEVICE_NAMES
from warpsmith.domain.jobs.job import AgentRole, Job, RewritePolicy, Strategy, Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.jobs.rewriter import rewriter
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.space import Configuration, Constraint, Parameter, Space
from warpsmith.domain.templates.template import AppliedRule, Template
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.job_files.jobfile import parse_job
from warpsmith.source.lexing.tokens import tokenise
from warpsmith.source.tree.syntax_tree import entry_name
from warpsmith.tuning.tasks import Idea, Profile, ProposedCase, StepPayload, StepResult, ToolAnswer, ToolCall

WITH_TOOLS: tuple[AgentRole, ...] = ("templater", "repairer")
"""Roles that may use tools before they answer."""


def accept(text: str, provider: str, payload: StepPayload, context: StepContext) -> StepResult:
    """The result of a step from the text of a reply.

    Raises:
        BadReply: it cannot be used; the message is addressed to its author.
    """
    models: list[type[Reply | CallsReply]] = [reply_of(payload.role, payload.ideas)]
    if payload.role in WITH_TOOLS:
        models.append(CallsReply)
    answer = parse_reply(text, *models)
    if isinstance(answer, CallsReply):
        calls = accept_calls(answer, payload, context)
        return StepResult(provider=provider, tool_calls=calls, plan=payload.plan, reply=text)
    if isinstance(answer, PlannerReply):
        if bool(answer.stop.strip()) == bool(answer.plan.strip()):
            raise BadReply("fill exactly one of plan and stop")
        _not_at_once(answer.stop, payload, "plan")
        gain = answer.expected_gain if answer.plan.strip() else None
        return StepResult(
            provider=provider, plan=answer.plan, stop=answer.stop, expected_gain=gain, reply=text
        )
    if isinstance(answer, IdeasReply):
        return accept_ideas(answer, provider, payload).model_copy(update={"reply": text})
    if isinstance(answer, TesterReply):
        return StepResult(provider=provider, cases=accept_tests(answer, context.job), reply=text)
    if isinstance(answer, ProfilerReply):
        profile = Profile(bottleneck=answer.bottleneck, hypotheses=tuple(h[:1000] for h in answer.hypotheses))
        return StepResult(provider=provider, profile=profile, reply=text)
    if isinstance(answer, TunerReply):
        template = accept_region(answer, payload, context)
        return StepResult(provider=provider, template=template, declined=payload.declined, reply=text)
    template, declined = accept_template(answer, context)
    return StepResult(provider=provider, template=template, declined=declined, plan=payload.plan, reply=text)


def accept_ideas(answer: IdeasReply, provider: str, payload: StepPayload) -> StepResult:
    """The ideas of a planner. Names are the same if they differ in case or spaces only.

    Raises:
        BadReply: see `accept`.
    """
    if bool(answer.stop.strip()) == bool(answer.ideas):
        raise BadReply("fill exactly one of ideas and stop")
    _not_at_once(answer.stop, payload, "ideas")
    if len(answer.ideas) > payload.ideas:
        raise BadReply(
            f"ideas: {len(answer.ideas)} are too many; name at most {payload.ideas}, the best first"
        )
    ideas: list[Idea] = []
    for index, idea in enumerate(answer.ideas):
        name = " ".join(idea.name.lower().split())
        if any(name == known.name for known in ideas):
            raise BadReply(f"ideas.{index}.name: {name!r} is named twice; ideas must differ in kind")
        if not (idea.sentence.strip() and idea.plan.strip()):
            raise BadReply(f"ideas.{index}: sentence and plan must not be blank")
        ideas.append(
            Idea(name=name, sentence=idea.sentence, plan=idea.plan, expected_gain=idea.expected_gain)
        )
    gains = [idea.expected_gain for idea in ideas]
    known_gains = [gain for gain in gains if gain is not None]
    best = max(known_gains, default=None) if len(known_gains) == len(gains) else None
    return StepResult(provider=provider, stop=answer.stop, ideas=tuple(ideas), expected_gain=best)


def _not_at_once(stop: str, payload: StepPayload, field: str) -> None:
    if payload.round == 1 and stop.strip():
        raise BadReply(
            f"stop: in round 1 only the user's kernel was measured; say in {field} what to try first"
        )


def accept_template(answer: TemplateReply, context: StepContext) -> tuple[Template, tuple[DeclinedRule, ...]]:
    """The template of an answer, and the rules that declined.

    Raises:
        BadReply: see `accept`.
    """
    if [bool(answer.rules), bool(answer.source.strip()), bool(answer.draft)].count(True) != 1:
        raise BadReply("fill exactly one of rules, source and draft")
    plain = context.job.strategy is Strategy.DIRECT
    if answer.draft:
        known = drafts(context)
        if answer.draft not in known:
            raise BadReply(f"draft: there is no {answer.draft!r}; known: {', '.join(known) or 'none'}")
        template = known[answer.draft]
        starts = _starts(answer.warm_starts, template.space, context)
        return template.model_copy(update={"warm_starts": (*starts, *template.warm_starts)[:64]}), ()
    if plain and answer.parameters:
        raise BadReply("parameters: no search follows in this job; write every value into the source")
    if answer.rules:
        template, declined = _by_rules(answer, context)
        first = typical(template, context)
    else:
        template, declined = _by_source(answer, context.job), ()
        first = template.space.defaults
    if plain:
        return fixed(template, first), declined
    starts = _starts(answer.warm_starts, template.space, context)
    return template.model_copy(update={"warm_starts": (*starts, *template.warm_starts)[:64]}), declined


def accept_calls(answer: CallsReply, payload: StepPayload, context: StepContext) -> tuple[ToolCall, ...]:
    """The tool calls of a turn. A call that cannot be made has its answer, which says why.

    Raises:
        BadReply: no call may be made any more, or not so many.
    """
    if len(answer.calls) > payload.tools:
        left = f"{payload.tools} tool calls are left" if payload.tools else "no tool call is left"
        raise BadReply(f"calls: {left}; answer with a template")
    known = drafts(context)
    made = []
    for index, text in enumerate(answer.calls):
        call = _call(f"{payload.turn}.{index}", text, known, context)
        if call.template is not None:
            known[call.draft] = call.template
        made.append(call)
    return tuple(made)


def _call(name: str, text: CallText, known: Mapping[str, Template], context: StepContext) -> ToolCall:
    if text.tool == "history":
        return ToolCall(id=name, tool=text.tool, answer=ToolAnswer.of([history(context)]))
    try:
        draft, template = _draft(text, known, context)
        configurations = [
            _configuration(
                f"configurations.{i}", {v.name: v.value for v in values}, template.space.parameters
            )
            for i, values in enumerate(text.configurations)
        ]
    except BadReply as exc:
        return ToolCall(id=name, tool=text.tool, answer=ToolAnswer(text=f"not done: {exc}", ok=False))
    return ToolCall(
        id=name, tool=text.tool, draft=draft, template=template, configurations=tuple(configurations)
    )


def _draft(text: CallText, known: Mapping[str, Template], context: StepContext) -> tuple[str, Template]:
    if text.draft and text.template is None:
        if text.draft not in known:
            raise BadReply(f"draft: there is no {text.draft!r}; known: {', '.join(known) or 'none'}")
        return text.draft, known[text.draft]
    if text.draft or text.template is None:
        raise BadReply(f"{text.tool} needs exactly one of draft and template")
    template, _ = accept_template(text.template, context)
    return f"d{len(known)}", template


def accept_tests(answer: TesterReply, job: Job) -> tuple[ProposedCase, ...]:
    """The cases of a test plan.

    Raises:
        BadReply: see `accept`.
    """
    listed = {w.key: w for w in job.workloads}
    names = sorted(job.workloads[0].dimensions)
    cases = []
    for index, shape in enumerate(answer.shapes):
        extents = {d.name: d.extent for d in shape.dimensions}
        if sorted(extents) != names or len(extents) != len(shape.dimensions):
            raise BadReply(f"shapes.{index}: must set exactly {', '.join(names)}")
        if Workload(dimensions=extents).key in listed:
            raise BadReply(f"shapes.{index}: is a listed workload, which is checked anyway")
        cases.append(ProposedCase(dimensions=extents, reason=shape.reason))
    for index, wanted in enumerate(answer.families):
        if wanted.workload not in listed:
            raise BadReply(f"families.{index}: {wanted.workload!r} is none of {', '.join(listed)}")
        dimensions = listed[wanted.workload].dimensions
        family = Family(wanted.family)
        cases.append(ProposedCase(dimensions=dimensions, family=family, reason=wanted.reason))
    return tuple(cases)


def _by_rules(answer: TemplateReply, context: StepContext) -> tuple[Template, tuple[DeclinedRule, ...]]:
    known = permitted_rules(context.job)
    for index, name in enumerate(answer.rules):
        if name not in known:
            raise BadReply(
                f"rules.{index}: {name!r} may not be used; permitted: {', '.join(known) or 'none'}"
            )
    policy = RewritePolicy.model_validate({"allow": answer.rules})
    report = rewriter().make_template(
        context.job.model_copy(update={"rewrite": policy}), context.include_dirs
    )
    declined = tuple(d for d in report.declined if d.code is not DeclineCode.NOT_PERMITTED)
    if not report.template.applied:
        raise BadReply("none of these rules applies: " + "; ".join(map(str, declined))[:2000])
    return report.template, declined


def _by_source(answer: TemplateReply, job: Job) -> Template:
    made = _as_job(answer, job)
    words = _words(made.kernel.text)
    used = set(words)
    for step in made.kernel.steps:
        entry = entry_name(step.entry)
        if entry not in words:
            raise BadReply(f"source: the entry function {entry!r} is gone; keep its name and arguments")
        launch = step.launch
        expressions = (*launch.grid, *launch.block, *launch.cluster, launch.shared_bytes)
        used |= set().union(*(e.names for e in expressions)) | set(re.findall(r"\w+", step.entry))
    used |= {name for a in made.kernel.scratch for e in a.shape for name in e.names}
    for parameter in made.parameters:
        if parameter.name not in used:
            raise BadReply(f"parameters: neither source nor launch uses {parameter.name}")
        if parameter.name in {a.name for a in made.kernel.arguments}:
            raise BadReply(f"parameters: {parameter.name} is an argument of the kernel; rename it")
    space = Space(parameters=made.parameters, constraints=made.constraints)
    names = tuple(p.name for p in made.parameters)
    applied = (AppliedRule(rule="written", detail=answer.reasoning[:500], parameters=names),)
    return Template(kernel=made.kernel, space=space, applied=applied)


def _words(text: str) -> set[str]:
    """Names of a source, and all words of its directives."""
    items = tokenise(text).items
    directives = " ".join(t.rest for t in items if t.kind == "directive")
    return {t.text for t in items if t.kind == "name"} | set(re.findall(r"\w+", directives))


def _as_job(answer: TemplateReply, job: Job) -> Job:
    """The job with this template in place of the user's kernel, so that its validation checks every name and
    expression."""
    data = job.model_dump(mode="json")
    if job.kernel.launches and _given_launch(answer):
        raise BadReply(
            "grid, block, shared_bytes, cluster, cooperative: the launches of a sequence stay as they are; "
            "leave them empty"
        )
    data["kernel"] |= {"source": answer.source, "launch": data["kernel"]["launch"] | _given_launch(answer)}
    mine = {p.name for p in answer.parameters}
    kept = [p for p in data["parameters"] if p["name"] not in mine]
    data["parameters"] = [p.model_dump(mode="json") for p in answer.parameters] + kept
    known = {c.expression.text for c in job.constraints}
    data["constraints"] += [
        c.model_dump(mode="json") for c in answer.constraints if c.expression not in known
    ]
    try:
        return parse_job(data)
    except InvalidInput as exc:
        raise BadReply(str(exc).replace("kernel.launch.", "").replace("kernel.", "")) from exc


def _given_launch(answer: TemplateReply) -> dict[str, Any]:
    """Fields of a launch that a reply fills."""
    shared = answer.shared_bytes if answer.shared_bytes.strip() else ""
    given: dict[str, Any] = {
        "grid": list(answer.grid),
        "block": list(answer.block),
        "shared_bytes": shared,
        "cluster": list(answer.cluster),
        "cooperative": answer.cooperative,
    }
    return {name: value for name, value in given.items() if value}


def accept_region(answer: TunerReply, payload: StepPayload, context: StepContext) -> Template:
    """The draft with the constraints and warm starts of a reply.

    Raises:
        BadReply: see `accept`.
    """
    draft = payload.draft
    assert draft is not None, "decide hands the draft to the tuner"
    dimensions = set(context.job.workloads[0].dimensions)
    known = dimensions | {p.name for p in draft.space.parameters} | DEVICE_NAMES
    more = [_constraint(i, c, known) for i, c in enumerate(answer.constraints)]
    space = Space(parameters=draft.space.parameters, constraints=(*draft.space.constraints, *more))
    broken = forbidden_by(space.constraints, space.defaults, context)
    if broken:
        raise BadReply(
            f"constraints: the defaults must stay allowed, and {broken} forbids them on every workload"
        )
    warm = _starts(answer.warm_starts, space, context)
    return draft.model_copy(update={"space": space, "warm_starts": (*warm, *draft.warm_starts)[:64]})


def _starts(
    texts: Sequence[Sequence[ValueOf]], space: Space, context: StepContext
) -> tuple[Configuration, ...]:
    """The configurations of a reply.

    Raises:
        BadReply: one does not set every parameter to one of its values, or breaks a constraint everywhere.
    """
    found: list[Configuration] = []
    for index, values in enumerate(texts):
        values_of = {v.name: v.value for v in values}
        configuration = _configuration(f"warm_starts.{index}", values_of, space.parameters)
        broken = forbidden_by(space.constraints, configuration, context)
        if broken:
            raise BadReply(f"warm_starts.{index}: breaks {broken} on every workload")
        found.append(configuration)
    return tuple(found)


def _constraint(index: int, text: Any, known: set[str]) -> Constraint:
    try:
        constraint = Constraint(expression=text.expression, reason=text.reason)
    except (ExpressionError, ValueError) as exc:
        raise BadReply(f"constraints.{index}: {exc}"[:1000]) from exc
    unknown = sorted(constraint.expression.names - known)
    if unknown:
        raise BadReply(f"constraints.{index}: unknown name {unknown[0]!r}")
    return constraint


def _configuration(where: str, values: dict[str, Any], parameters: tuple[Parameter, ...]) -> Configuration:
    names = [p.name for p in parameters]
    if sorted(values) != sorted(names):
        raise BadReply(f"{where}: must set exactly {', '.join(names)}")
    chosen: Configuration = {}
    for parameter in parameters:
        value = values[parameter.name]
        found = [v for v in parameter.values if v == value and isinstance(v, bool) == isinstance(value, bool)]
        if not found:
            raise BadReply(f"{where}: {value!r} is no value of {parameter.name}")
        chosen[parameter.name] = found[0]
    return chosen
