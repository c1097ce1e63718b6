"""Typed input of each role, made from the job and its trials. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from agents.context import StepContext
from agents.contracts import (
    CallInput,
    ConstraintText,
    IdeasInput,
    ParameterText,
    PlannerInput,
    ProfilerInput,
    RepairerInput,
    StepInput,
    TemplateInput,
    TemplaterInput,
    TesterInput,
    TrialInput,
    TunerInput,
)
from agents.questions.cards import cards_for
from agents.questions.kernel_input import kernel_input
from agents.questions.readings import readings
from agents.questions.remembered import example, lessons
from agents.questions.tried import history
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job, Strategy, Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.jobs.rewriter import rule_names
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.source.lexing.tokens import without_comments
from warpsmith.tuning.analysis.search_facts import Facts, facts_of
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.tasks import Profile, StepPayload

SHOWN_TRIALS = 5
MAX_LOG_CHARACTERS = 4000
MAX_REASON_CHARACTERS = 300


def question(payload: StepPayload, context: StepContext) -> StepInput:
    """The input of `payload.role`."""
    job = context.job
    if payload.role == "tuner":
        assert payload.draft is not None, "decide hands the draft to the tuner"
        compiled = context.baseline.facts if context.baseline is not None else None
        return TunerInput(
            device=_device(context),
            workloads=_workloads(job),
            template=_template(payload.draft),
            registers=compiled.registers if compiled else None,
            spill_bytes=compiled.spill_bytes if compiled else None,
            static_shared_bytes=compiled.static_shared_bytes if compiled else None,
        )
    if payload.role == "tester":
        return _tester(context)
    if payload.role == "profiler":
        return ProfilerInput(
            round=payload.round,
            kernel=kernel_input(job, _info(context)),
            device=_device(context),
            parent=None if context.parent is None else _template(context.parent),
            facts=facts(context),
            readings=_readings(context),
        )
    planner = _planner(payload, context)
    if payload.role == "planner":
        several = payload.ideas > 1
        return (
            IdeasInput(**dict(planner), ideas=payload.ideas, tried=history(context)) if several else planner
        )
    templater = _templater(payload, context, planner)
    if payload.role == "templater":
        return templater
    return RepairerInput(
        **dict(templater),
        rejected=None if context.rejected is None else _template(context.rejected),
        failure=payload.failure[:MAX_LOG_CHARACTERS],
        log=without_comments(context.log)[:MAX_LOG_CHARACTERS],
    )


def _templater(payload: StepPayload, context: StepContext, planner: PlannerInput) -> TemplaterInput:
    return TemplaterInput(
        **dict(planner),
        # The rules' plan is their profile again.
        plan=""
        if payload.profile and payload.plan == "; ".join(payload.profile.hypotheses)
        else payload.plan,
        cards=cards_for(context),
        rules=permitted_rules(context.job),
        parameters_wanted=context.job.strategy is not Strategy.DIRECT,
        tools=payload.tools,
        tool_seconds=round(payload.tool_seconds, 1),
        drafts={name: _template(template) for name, template in drafts(context).items()},
        calls=tuple(
            CallInput(
                tool=call.tool,
                draft=call.draft,
                configurations=call.configurations,
                ok=answer.ok,
                answer=answer.text,
                seconds=round(answer.seconds, 1),
            )
            for turn in context.turns
            for call, answer in zip(turn.calls, turn.answers, strict=True)
        ),
    )


def drafts(context: StepContext) -> dict[str, Template]:
    """Templates that were given to tools earlier in a conversation, by name."""
    calls = [call for turn in context.turns for call in turn.calls]
    return {call.draft: call.template for call in calls if call.template is not None}


def permitted_rules(job: Job) -> tuple[str, ...]:
    """Names of the rewrite rules that this job allows."""
    return tuple(name for name in rule_names() if job.rewrite.enabled and job.rewrite.permits(name))


def facts(context: StepContext) -> Facts | None:
    """Facts in numbers; None before the baseline."""
    if context.baseline is None:
        return None
    return facts_of(context.job, context.baseline, context.parent, context.trials)


def _readings(context: StepContext) -> tuple[str, ...]:
    known, device = facts(context), _info(context)
    return () if known is None or device is None else readings(context.job, known, device)


def _info(context: StepContext) -> DeviceInfo | None:
    return None if context.baseline is None else context.baseline.device


def _tester(context: StepContext) -> TesterInput:
    cases = context.baseline.cases if context.baseline is not None else ()
    listed = [w.key for w in context.job.workloads]
    by_key: dict[str, list[str]] = {key: [] for key in listed}
    shapes = []
    for case in (c for c in cases if c.family is not Family.EDGE_CASE):
        key = Workload(dimensions=case.dimensions).key
        if key in by_key:
            by_key[key].append(case.family.value)
        else:
            shapes.append(key)
    return TesterInput(
        kernel=kernel_input(context.job, _info(context)),
        device=_device(context),
        workloads=tuple(listed),
        shapes=tuple(shapes),
        families={key: tuple(found) for key, found in by_key.items()},
    )


def _planner(payload: StepPayload, context: StepContext) -> PlannerInput:
    job = context.job
    measured = sorted(
        ((o.objective, c) for c, o in context.trials if isinstance(o, Measured)), key=lambda pair: pair[0]
    )
    best = [TrialInput(configuration=c, objective=o) for o, c in measured[:SHOWN_TRIALS]]
    worst = [TrialInput(configuration=c, objective=o) for o, c in measured[SHOWN_TRIALS:][-SHOWN_TRIALS:]]
    read = _readings(context)
    return PlannerInput(
        round=payload.round,
        kernel=kernel_input(job, _info(context)),
        device=_device(context),
        facts=facts(context),
        readings=read,
        profile=_said_once(payload.profile, read),
        baseline_us=_baseline_us(context),
        parent=None if context.parent is None else _template(context.parent),
        best=tuple(best),
        worst=tuple(worst),
        rejections=_rejections(context.trials),
        earlier=lessons(context),
        example=_example(payload, context),
    )


def _said_once(profile: Profile | None, read: Sequence[str]) -> Profile | None:
    """The profile without the hypotheses that the readings hold already."""
    if profile is None:
        return None
    return profile.model_copy(update={"hypotheses": tuple(h for h in profile.hypotheses if h not in read)})


def _example(payload: StepPayload, context: StepContext) -> TemplateInput | None:
    """The best template of earlier jobs, until this job has one of its own."""
    found = example(context) if payload.round == 1 and payload.role != "planner" else None
    return None if found is None else _template(found)


def _workloads(job: Job) -> tuple[str, ...]:
    return tuple(f"{w.key} (weight {w.weight:g})" for w in job.workloads)


def _device(context: StepContext) -> dict[str, int | str]:
    if context.baseline is None:
        return {}
    device = context.baseline.device
    words: Mapping[str, int | str] = {"name": device.name, "architecture": device.architecture}
    return {**words, **device.limits.model_dump()}


def _baseline_us(context: StepContext) -> dict[str, float]:
    timings = context.baseline.timings if context.baseline is not None else ()
    times = {t.workload: time_us(context.job, t) for t in timings}
    return {key: value for key, value in times.items() if value is not None}


def _template(template: Template) -> TemplateInput:
    launch = template.kernel.launch
    return TemplateInput(
        source=without_comments(template.kernel.text),
        grid=tuple(e.text for e in launch.grid),
        block=tuple(e.text for e in launch.block),
        shared_bytes=launch.shared_bytes.text,
        attributes=launch.attributes_text,
        parameters=tuple(
            ParameterText(name=p.name, values=p.values, default=p.baseline_value, meaning=p.meaning)
            for p in template.space.parameters
            if len(p.values) <= 64
        ),
        constraints=tuple(
            ConstraintText(expression=c.expression.text, reason=c.reason) for c in template.space.constraints
        ),
        applied=tuple(a.rule for a in template.applied),
    )


def _rejections(trials: Sequence[tuple[Configuration, Outcome]]) -> dict[str, int]:
    reasons = [
        f"{o.stage.value}: {o.reason[:MAX_REASON_CHARACTERS]}" for _, o in trials if isinstance(o, Rejected)
    ]
    return dict(Counter(reasons).most_common(SHOWN_TRIALS))
