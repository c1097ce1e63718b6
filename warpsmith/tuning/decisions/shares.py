"""Shares out rounds, branches and trials of a job, and computes the rest of its budget. Pure."""

from warpsmith.domain.jobs.job import Strategy
from warpsmith.domain.state import CandidateState, TaskKind
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.decisions.task_history import baseline_of, best_so_far, ideas_in, last_task, steps_of
from warpsmith.tuning.decisions.time_budget import first_batch_s, search_s
from warpsmith.tuning.tasks import StepPayload

LEAST_TRIALS = 7
"""Trials by which a template is judged: its defaults, and up to six configurations that its author names."""


def rounds(snapshot: JobSnapshot) -> int:
    """Number of rounds. A search without agents has one candidate and so one round."""
    return 1 if snapshot.job.strategy is Strategy.SEARCH else snapshot.job.budget.rounds


def parents(snapshot: JobSnapshot, round_: int) -> list[str | None]:
    """Starting points of a round: the best candidates of earlier rounds, or the user's kernel in the first.

    The best of every idea comes first; where ideas are fewer than places, the next best fill these.
    """
    before = [(c.best_objective, c.number, c) for c in snapshot.candidates if c.round < round_]
    rejected = CandidateState.REJECTED
    measured = [(b, number, c) for b, number, c in before if b is not None and c.state is not rejected]
    ranked = [c for _, _, c in sorted(measured, key=lambda found: found[:2])]
    ideas = ideas_in(snapshot.tasks)
    firsts: dict[str, CandidateSummary] = {}
    for candidate in ranked:
        firsts.setdefault(ideas.get(candidate.made_by, ""), candidate)
    others = [c for c in ranked if c not in firsts.values()]
    return [c.id for c in [*firsts.values(), *others][: snapshot.job.agents.parents]] or [None]


def unopened(snapshot: JobSnapshot, round_: int) -> list[str | None]:
    """Parents of a round without an agent step; none once a verification withdrew some."""
    if last_task(snapshot, TaskKind.VERIFY) is not None:
        return []
    opened = {p.parent for p in steps_of(snapshot) if p.round == round_ and p.role != "tester"}
    return [p for p in parents(snapshot, round_) if p not in opened]


def trial_share(snapshot: JobSnapshot, candidate: CandidateSummary) -> int:
    """Trials that this candidate may have in total: the remaining ones divided by the branches to come.

    With several ideas a round has its trials in common. A candidate then gets what the others of its round
    leave, and no fewer than any of them had, since it may be the winner.
    """
    others = [c for c in snapshot.candidates if c.id != candidate.id]
    left = snapshot.job.budget.trials - sum(c.trials for c in others)
    if _agents_are_done(snapshot):
        return left
    if snapshot.job.agents.ideas > 1:
        had = [c.trials for c in others if c.round == candidate.round]
        rest = round_trials(snapshot, candidate.round) - sum(had)
        return min(left, max(rest, LEAST_TRIALS, *had))
    later = (rounds_left(snapshot, candidate.round) - 1) * snapshot.job.agents.parents
    branches = 1 + len(unopened(snapshot, candidate.round)) + later
    return -(-left // branches)


def round_trials(snapshot: JobSnapshot, round_: int) -> int:
    """Trials that a round of several ideas may have: the remaining ones divided by the rounds to come."""
    others = sum(c.trials for c in snapshot.candidates if c.round != round_)
    return -(-(snapshot.job.budget.trials - others) // rounds_left(snapshot, round_))


def rounds_left(snapshot: JobSnapshot, round_: int) -> int:
    """Number of rounds to come, with this one, which may be past if its template is mended late."""
    newest = max((p.round for p in steps_of(snapshot)), default=round_)
    return 1 + max(0, rounds(snapshot) - max(round_, newest))


def _agents_are_done(snapshot: JobSnapshot) -> bool:
    """True if agents have nothing to add: neither the last answer nor another of its round did."""
    step = last_task(snapshot, TaskKind.AGENT_STEP)
    if step is None or _is_rivals(step) or step.id in {c.made_by for c in snapshot.candidates}:
        return False
    assert isinstance(step.payload, StepPayload)
    return not any(c.round == step.payload.round for c in snapshot.candidates)


def _is_rivals(step: TaskView) -> bool:
    """True if a step asked a provider beside the chosen ones, which may have more to say."""
    return isinstance(step.payload, StepPayload) and step.payload.provider is not None


def budget_spent(snapshot: JobSnapshot) -> str:
    """Name of the budget that is spent, in words; empty if none is."""
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
