"""How rounds, branches and trials of a job are shared out, and what is left of its budget. Pure."""

from warpsmith.domain.job import Strategy
from warpsmith.domain.state import TaskKind
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.decisions.task_history import baseline_of, best_so_far, last_task, steps_of
from warpsmith.tuning.decisions.time_budget import first_batch_s, search_s
from warpsmith.tuning.tasks import StepPayload


def rounds(snapshot: JobSnapshot) -> int:
    """Number of rounds. A search without agents has one candidate and so one round."""
    return 1 if snapshot.job.strategy is Strategy.SEARCH else snapshot.job.budget.rounds


def parents(snapshot: JobSnapshot, round_: int) -> list[str | None]:
    """Starting points of a round: the best candidates of earlier rounds, or the user's kernel in the
    first."""
    before = [(c.best_objective, c.number, c.id) for c in snapshot.candidates if c.round < round_]
    ranked = sorted((b, n, i) for b, n, i in before if b is not None)
    return [i for _, _, i in ranked[: snapshot.job.agents.parents]] or [None]


def unopened(snapshot: JobSnapshot, round_: int) -> list[str | None]:
    """Parents of a round without an agent step."""
    opened = {p.parent for p in steps_of(snapshot) if p.round == round_ and p.role != "tester"}
    return [p for p in parents(snapshot, round_) if p not in opened]


def trial_share(snapshot: JobSnapshot, candidate: CandidateSummary) -> int:
    """Trials that this candidate may have in total: the remaining ones divided by the branches to come."""
    others = sum(c.trials for c in snapshot.candidates if c.id != candidate.id)
    step = last_task(snapshot, TaskKind.AGENT_STEP)
    if step is not None and not _is_rivals(step) and step.id not in {c.made_by for c in snapshot.candidates}:
        return snapshot.job.budget.trials - others  # agents have nothing more to add
    later = max(0, rounds(snapshot) - candidate.round) * snapshot.job.agents.parents
    branches = 1 + len(unopened(snapshot, candidate.round)) + later
    return -(-(snapshot.job.budget.trials - others) // branches)


def _is_rivals(step: TaskView) -> bool:
    """Whether a step asked somebody beside those who were chosen; the others may have more to say."""
    return isinstance(step.payload, StepPayload) and step.payload.provider is not None


def budget_spent(snapshot: JobSnapshot) -> str:
    """Which budget of the job is spent, in words; empty if none is."""
    budget = snapshot.job.budget
    if snapshot.trials_done >= budget.trials:
        return f"the budget of {budget.trials} trials is spent"
    if seconds_left(snapshot) <= 1:
        return f"the budget of {budget.seconds:g} seconds is spent"
    return ""


def seconds_left(snapshot: JobSnapshot) -> float:
    """Seconds that are left for the search, without those that are kept for verification; above 0."""
    left = search_s(snapshot.job, baseline_of(snapshot), best_so_far(snapshot), snapshot.elapsed_s)
    searched = any(t.kind is TaskKind.SLICE and t.result is not None for t in snapshot.tasks)
    return max(0.001, left if searched else max(left, first_batch_s(snapshot.job)))
