"""Two templates of one round: what the rules make of a kernel stands beside what a model made of it.

Each runs a heat, and the rest of the budget goes to the better one, so that a model's template never costs a
user what the rules would have gained. Pure.
"""

import math

from warpsmith.domain.job import RULES, Strategy
from warpsmith.domain.state import CandidateState
from warpsmith.tuning.decisions.shares import seconds_left
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.decisions.task_history import is_exhausted, steps_of
from warpsmith.tuning.tasks import SlicePayload, StepPayload, StepResult

LEAST_TRIALS = 7
"""Trials by which a template is judged: its defaults, and up to six configurations that its author names."""
ROUND = 1
"""Round in which the rules have a template of their own. Later rounds start from the better one."""


def rules_question(snapshot: JobSnapshot) -> StepPayload | None:
    """The question that brings the rules' own template; None if it is asked already, or not wanted.

    The rules are not asked if they answered in the first place, if the job forbids them, or if its strategy
    is another than templates.
    """
    if _rules_are_asked(snapshot) or not is_contested(snapshot):
        return None
    plan = next((p.plan for p in steps_of(snapshot) if p.role == "templater"), "")
    return StepPayload(role="templater", round=ROUND, plan=plan, provider=RULES)


def is_contested(snapshot: JobSnapshot) -> bool:
    """Whether a template of another author than the rules opened the first round."""
    job = snapshot.job
    if job.strategy is not Strategy.TEMPLATE or not job.rewrite.enabled:
        return False
    return any(_by_model(task) for task in snapshot.tasks)


def heat_goes_on(snapshot: JobSnapshot, candidate: CandidateSummary) -> bool:
    """Whether a heat that has run says too little: its seconds may have gone into the first checks, and the
    defaults of a template are as slow as the kernel that they imitate."""
    return candidate.trials < LEAST_TRIALS and not is_exhausted(snapshot.tasks, candidate.id)


def runs_heat(snapshot: JobSnapshot, candidate: CandidateSummary) -> bool:
    """Whether the next slice of a candidate is its heat."""
    if candidate.round != ROUND or not is_contested(snapshot):
        return False
    return not any(p.candidate == candidate.id for p in _slices(snapshot)) and not _final(snapshot)


def had_heat(snapshot: JobSnapshot, candidate: CandidateSummary) -> bool:
    """Whether a candidate has run its heat, and the rest of the budget is not its own yet."""
    mine = [p for p in _slices(snapshot) if p.candidate == candidate.id]
    return bool(mine) and all(p.heat for p in mine)


def heat_share(snapshot: JobSnapshot) -> tuple[int, float]:
    """Trials and seconds of the next heat: a third of what is left, or half if it is the second one."""
    parts = 2 if any(p.heat for p in _slices(snapshot)) else 3
    trials = snapshot.job.budget.trials - snapshot.trials_done
    return max(1, math.ceil(trials / parts)), seconds_left(snapshot) / parts


def finalist(snapshot: JobSnapshot) -> CandidateSummary | None:
    """The better of the templates that ran heats, if the rest of the budget is still to be given away."""
    if not is_contested(snapshot) or _final(snapshot):
        return None
    ran = [c for c in snapshot.candidates if c.state is CandidateState.SEARCHED and had_heat(snapshot, c)]
    measured = [(c.best_objective, c.number, c) for c in ran if c.best_objective is not None]
    return min(measured, default=(0.0, 0, None), key=lambda found: found[:2])[2]


def _final(snapshot: JobSnapshot) -> bool:
    """Whether the rest of the budget was given away."""
    return any(not p.heat for p in _slices(snapshot))


def _slices(snapshot: JobSnapshot) -> list[SlicePayload]:
    return [t.payload for t in snapshot.tasks if isinstance(t.payload, SlicePayload)]


def _rules_are_asked(snapshot: JobSnapshot) -> bool:
    return any(p.provider == RULES for p in steps_of(snapshot))


def _by_model(task: TaskView) -> bool:
    """Whether a task brought the first round's template, and from somebody else than the rules."""
    step, result = task.payload, task.result
    if not isinstance(step, StepPayload) or not isinstance(result, StepResult):
        return False
    made = step.round == ROUND and step.role in ("templater", "repairer") and result.template is not None
    return made and result.provider != RULES
