"""The ideas of a round: what a planner wants tried side by side. Pure."""

from warpsmith.domain.jobs.job import Strategy
from warpsmith.tuning.decisions.halving import parts
from warpsmith.tuning.decisions.shares import LEAST_TRIALS, parents, round_trials, unopened
from warpsmith.tuning.decisions.snapshot import JobSnapshot
from warpsmith.tuning.decisions.stopping import no_gain
from warpsmith.tuning.decisions.task_history import baseline_of, faults_of, steps_of
from warpsmith.tuning.decisions.tool_turns import with_tools
from warpsmith.tuning.tasks import Idea, StepPayload, StepResult


def ideas_wanted(snapshot: JobSnapshot, round_: int) -> int:
    """Number of ideas that the planner of a branch may have: as many as the job says, if the trials of the
    round last for the least first rung of each."""
    job, branches = snapshot.job, len(parents(snapshot, round_))
    if job.strategy is Strategy.SEARCH:
        return 1
    rules = int(round_ == 1)  # Their template may stand beside the others.
    trials = round_trials(snapshot, round_)
    affordable = (
        n for n in range(job.agents.ideas, 1, -1) if LEAST_TRIALS * parts(n * branches + rules) <= trials
    )
    return next(affordable, 1)


def planned(snapshot: JobSnapshot, round_: int) -> int:
    """Number of templates that a round is to have, without the rules' own; branches to come count in full."""
    known = sum(len(_worthwhile(snapshot, payload, result)) for payload, result in _plans(snapshot, round_))
    return known + len(unopened(snapshot, round_)) * ideas_wanted(snapshot, round_)


def next_idea(snapshot: JobSnapshot, round_: int) -> StepPayload | None:
    """The question that brings the template of a round's next idea; None if each was asked for."""
    asked = {(p.parent, p.idea) for p in steps_of(snapshot) if p.round == round_ and p.role == "templater"}
    for planner, result in _plans(snapshot, round_):
        for idea in _worthwhile(snapshot, planner, result):
            if (planner.parent, idea.name) not in asked:
                return _templater_question(snapshot, planner, idea)
    return None


def gainless(snapshot: JobSnapshot, round_: int, expected: float | None) -> str:
    """The reason why an expected gain is not worth its cost; empty if it is."""
    # In the first round nothing was measured that a gain could be expected over.
    judged = round_ > 1 and snapshot.job.budget.stop_early
    return no_gain(expected if judged else None, baseline_of(snapshot))


def _templater_question(snapshot: JobSnapshot, planner: StepPayload, idea: Idea) -> StepPayload:
    known = {
        "role": "templater",
        "plan": f"{idea.name}: {idea.sentence}\n{idea.plan}" if idea.name else idea.plan,
        "faults": faults_of(snapshot),
        "ideas": 1,
        "idea": idea.name,
    }
    return with_tools(snapshot, planner.model_copy(update=known))


def _worthwhile(snapshot: JobSnapshot, planner: StepPayload, result: StepResult) -> list[Idea]:
    """The ideas of a planner that are worth their cost; a single plan is one without a name."""
    if result.stop:
        return []
    ideas = result.ideas or (Idea(plan=result.plan, expected_gain=result.expected_gain),)
    return [idea for idea in ideas if not gainless(snapshot, planner.round, idea.expected_gain)]


def _plans(snapshot: JobSnapshot, round_: int) -> list[tuple[StepPayload, StepResult]]:
    """Questions to the planners of a round, with their answers."""
    return [
        (t.payload, t.result)
        for t in snapshot.tasks
        if isinstance(t.payload, StepPayload)
        and isinstance(t.result, StepResult)
        and (t.payload.role, t.payload.round) == ("planner", round_)
    ]
