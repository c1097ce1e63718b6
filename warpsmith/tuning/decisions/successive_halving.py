"""Successive halving among the templates of a round: the budget goes to those that earn it. Pure.

All run on the first rung, then the better half gets more, until one is left: it gets the rest (`halving`).
The arms are the templates of a round's ideas, and in the first round one that the rules make of the user's
kernel, so that a model's template never costs a user what the rules would have gained. The rungs that slices
were started for say how far the halving has come.
"""

import math
from dataclasses import dataclass

from warpsmith.domain.jobs.job import RULES, Strategy
from warpsmith.domain.state import CandidateState
from warpsmith.tuning.decisions.halving import half, parts, weight
from warpsmith.tuning.decisions.ideas import planned
from warpsmith.tuning.decisions.shares import LEAST_TRIALS, round_trials, rounds_left, seconds_left, unopened
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.decisions.task_history import is_exhausted, slices_of, steps_of
from warpsmith.tuning.tasks import StepPayload, StepResult

ROUND = 1
"""Round in which the rules have a template of their own. Later rounds start from the better one."""


@dataclass(frozen=True)
class Share:
    """Trials and seconds that an arm gets on a rung."""

    rung: int
    trials: int
    seconds: float


@dataclass(frozen=True)
class NextRun:
    """Arm that runs next, and its share."""

    candidate: CandidateSummary
    share: Share | None
    """Share on its next rung; None: the arm has won, and gets the rest."""


@dataclass(frozen=True)
class SuccessiveHalving:
    """State of the successive halving of a round."""

    snapshot: JobSnapshot
    round: int
    size: int
    """Number of arms, with those to come."""
    rungs: dict[str, int]
    """Last rung of each candidate; without candidates that never ran on one."""
    settled: bool
    """True once the rest was given away, or if there is a single arm."""

    def is_on_rung(self, candidate: CandidateSummary) -> bool:
        """True if the last run of a candidate, or else its next one, is on a rung."""
        ran = [p for p in slices_of(self.snapshot) if p.candidate == candidate.id]
        if ran:
            return all(p.heat for p in ran)
        return candidate.round == self.round and self.size > 1 and not self.settled

    def first_rung(self, candidate: CandidateSummary) -> Share | None:
        """Share of a candidate that is searched on the first rung; None if it had its share.

        The rung goes on if it says too little: its seconds may have gone into the first checks, and the
        defaults of a template are as slow as the kernel that they imitate.
        """
        rung = self.rungs.get(candidate.id)
        little = candidate.trials < LEAST_TRIALS and not self._is_exhausted(candidate)
        if rung is not None and (rung > 0 or not little):
            return None
        began = {_line(self.snapshot, c) for c in self._candidates() if c.id in self.rungs}
        return self._share(0, parts(self.size, waiting=max(1, self.size - len(began))))

    def next_run(self) -> NextRun | None:
        """Arm that runs once no candidate is searched; None if there is none, or others are to come."""
        if self.settled or unopened(self.snapshot, self.round):
            return None
        ran = [c for c in self._candidates() if c.id in self.rungs and c.state is CandidateState.SEARCHED]
        measured = [(c.best_objective, c.number, c) for c in ran if c.best_objective is not None]
        # Those that went on can only have improved since, so they are the better half again.
        alive = [c for _, _, c in sorted(measured, key=lambda found: found[:2])]
        rung = 0
        while half(len(alive)) > 1:
            alive, rung = alive[: half(len(alive))], rung + 1
            waiting = [c for c in alive if self.rungs[c.id] < rung and not self._is_exhausted(c)]
            if waiting:
                return NextRun(waiting[0], self._share(rung, parts(len(alive), rung, len(waiting))))
        return NextRun(alive[0], None) if alive else None

    def _share(self, rung: int, total: int) -> Share:
        """Share of all that is left that one arm gets on a rung.

        Args:
            total: number of parts that are left.
        """
        snapshot, part = self.snapshot, weight(rung)
        trials = snapshot.job.budget.trials - snapshot.trials_done
        seconds = seconds_left(snapshot)
        # Where only the first round is halved, it may use what later ones would have.
        if snapshot.job.agents.ideas > 1:
            trials = round_trials(snapshot, self.round) - sum(c.trials for c in self._candidates())
            seconds /= rounds_left(snapshot, self.round)
        return Share(rung, max(1, math.ceil(trials * part / total)), seconds * part / total)

    def _candidates(self) -> list[CandidateSummary]:
        return [c for c in self.snapshot.candidates if c.round == self.round]

    def _is_exhausted(self, candidate: CandidateSummary) -> bool:
        return is_exhausted(self.snapshot.tasks, candidate.id)


def halving_of(snapshot: JobSnapshot, round_: int) -> SuccessiveHalving | None:
    """Successive halving of a round; in a job of one idea that of the first round. None if there is none."""
    beside = rules_stand_by(snapshot)
    if snapshot.job.agents.ideas == 1:
        if not beside:
            return None
        round_ = ROUND
    rounds_of = {c.id: c.round for c in snapshot.candidates}
    ran = [p for p in slices_of(snapshot) if rounds_of[p.candidate] >= round_]
    return SuccessiveHalving(
        snapshot=snapshot,
        round=round_,
        size=planned(snapshot, round_) + (beside and round_ == ROUND),
        rungs={p.candidate: p.rung for p in ran if p.heat},
        settled=any(not p.heat for p in ran),
    )


def rules_question(snapshot: JobSnapshot) -> StepPayload | None:
    """The question that brings the rules' own template; None if it is asked already, or not wanted.

    The rules are not asked if they answered in the first place, if the job forbids them, or if its strategy
    is another than templates.
    """
    if any(p.provider == RULES for p in steps_of(snapshot)) or not rules_stand_by(snapshot):
        return None
    plan = next((p.plan for p in steps_of(snapshot) if p.role == "templater"), "")
    return StepPayload(role="templater", round=ROUND, plan=plan, provider=RULES)


def rules_stand_by(snapshot: JobSnapshot) -> bool:
    """True if another author than the rules opened the first round, so that their template stands beside."""
    job = snapshot.job
    if job.strategy is not Strategy.TEMPLATE or not job.rewrite.enabled:
        return False
    return any(_by_model(task) for task in snapshot.tasks)


def _line(snapshot: JobSnapshot, candidate: CandidateSummary) -> tuple[str | None, str, bool]:
    """Parent, idea and author, which a template and its repairs have in common."""
    made = next(t.payload for t in snapshot.tasks if t.id == candidate.made_by)
    assert isinstance(made, StepPayload)
    return made.parent, made.idea, made.provider == RULES


def _by_model(task: TaskView) -> bool:
    """True if a task brought a template of the first round from another author than the rules."""
    step, result = task.payload, task.result
    if not isinstance(step, StepPayload) or not isinstance(result, StepResult):
        return False
    made = step.round == ROUND and step.role in ("templater", "repairer") and result.template is not None
    return made and result.provider != RULES
