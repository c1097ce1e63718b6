"""A model's template has the rules' own beside it, and the budget goes to the better one."""

from dataclasses import replace

import pytest

from testbed.job_in_memory import Rows
from warpsmith.domain.jobs.job import RULES, Budget, RewritePolicy, Strategy
from warpsmith.domain.state import JobState, SliceEnd, TaskKind
from warpsmith.tuning.decisions.snapshot import CandidateSummary
from warpsmith.tuning.tasks import Payload, SlicePayload, SliceResult, StepPayload, StepResult

MODEL, OWN = "c0", "c1"


def rows(model: float = 0.5, rules: float = 0.8, trials: int = 60, rounds: int = 1) -> Rows:
    """A job whose model's template reaches one objective, and whose rules' template another."""

    def objective(candidate: CandidateSummary) -> float:
        return rules if candidate.id == OWN else model

    return Rows(Budget(rounds=rounds, trials=trials), provider="external", objective=objective)


def slices(payloads: list[Payload | None]) -> list[SlicePayload]:
    return [p for p in payloads if isinstance(p, SlicePayload)]


@pytest.mark.parametrize(
    ("model", "rules", "better"), [(0.5, 0.8, MODEL), (0.8, 0.5, OWN), (0.5, 0.5, MODEL)]
)
def test_the_rest_of_the_budget_goes_to_the_better_template(model: float, rules: float, better: str) -> None:
    end = rows(model, rules).run()
    ran = slices([t.payload for t in end.tasks])
    assert end.state is JobState.DONE
    assert [p.candidate for p in ran if p.heat] == [MODEL, OWN]
    assert {p.candidate for p in ran if not p.heat} == {better}
    assert end.trials_done == 60


def test_each_heat_is_a_third_of_the_budget_at_most() -> None:
    ran = slices([t.payload for t in rows().run().tasks])
    assert [p.trials for p in ran if p.heat] == [20, 27], "fewer trials ran than the first heat might have"
    first, second = (p for p in ran if p.heat)
    assert first.seconds == pytest.approx(second.seconds * 2 / 3)
    assert all(not p.shared for p in (first, second))


def test_the_rules_are_asked_once_for_the_users_kernel() -> None:
    job = rows(rounds=3)
    asked = [t.payload for t in job.run().tasks if isinstance(t.payload, StepPayload)]
    own = [p for p in asked if p.provider == RULES]
    assert [(p.role, p.round, p.parent) for p in own] == [("templater", 1, None)]
    assert max(p.round for p in asked) == 3


def test_a_job_that_asks_no_model_has_no_rival() -> None:
    job = Rows(Budget(rounds=1, trials=20))
    end = job.run()
    assert len(end.candidates) == 1
    assert not any(p.heat for p in slices([t.payload for t in end.tasks]))


@pytest.mark.parametrize("change", [{"strategy": Strategy.DIRECT}, {"rewrite": RewritePolicy(enabled=False)}])
def test_jobs_that_want_no_rules_have_no_rival(change: dict[str, object]) -> None:
    job = rows()
    job.snapshot = replace(job.snapshot, job=job.snapshot.job.model_copy(update=change))
    assert len(job.run().candidates) == 1


def test_a_models_template_that_fails_leaves_the_budget_to_the_rules() -> None:
    def slice_(job: Rows, payload: SlicePayload) -> SliceResult | None:
        made = next(c.made_by for c in job.snapshot.candidates if c.id == payload.candidate)
        step = next(t.payload for t in job.snapshot.tasks if t.id == made)
        assert isinstance(step, StepPayload)
        wrong = SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason="it is wrong")
        return wrong if step.provider is None else None

    job = replace(rows(), slice=slice_)
    end = job.run()
    assert end.state is JobState.DONE
    asked = [t.payload for t in end.tasks if isinstance(t.payload, StepPayload)]
    assert [p.role for p in asked if p.role in ("templater", "repairer")] == [
        "templater",
        "repairer",
        "repairer",
        "templater",
    ]
    last = slices([t.payload for t in end.tasks])[-1]
    assert (last.candidate, last.heat) == (end.candidates[-1].id, False)


def test_rules_that_change_nothing_are_no_rival() -> None:
    def nothing(job: Rows, payload: StepPayload) -> StepResult | None:
        return StepResult(provider=RULES, stop="no rule applies") if payload.provider == RULES else None

    end = replace(rows(rounds=2), agent_step=nothing).run()
    assert end.state is JobState.DONE
    assert [c.round for c in end.candidates] == [1, 2]
    ran = slices([t.payload for t in end.tasks])
    assert [p.heat for p in ran if p.candidate == MODEL][:2] == [True, False]


def test_a_heat_that_exhausts_its_space_is_not_searched_again() -> None:
    def ended(job: Rows, payload: SlicePayload) -> SliceResult | None:
        return SliceResult(trials=4, ended_by=SliceEnd.EXHAUSTED) if payload.candidate == MODEL else None

    end = replace(rows(), slice=ended).run()
    assert end.state is JobState.DONE
    assert sum(t.kind is TaskKind.SLICE for t in end.tasks) == 2


@pytest.mark.parametrize("trials", [1, 2, 3, 5])
@pytest.mark.parametrize("rounds", [1, 3])
def test_small_budgets_end_as_well(trials: int, rounds: int) -> None:
    end = rows(trials=trials, rounds=rounds).run()
    assert (end.state, end.trials_done) == (JobState.DONE, trials)


def test_a_heat_whose_seconds_went_into_checks_goes_on() -> None:
    """One trial, of defaults that are as slow as the user's kernel, says nothing of a template."""

    def slow(job: Rows, payload: SlicePayload) -> SliceResult | None:
        return SliceResult(trials=1) if payload.heat else None

    ran = slices([t.payload for t in replace(rows(), slice=slow).run().tasks])
    heats = [p.candidate for p in ran if p.heat]
    assert (heats.count(MODEL), heats.count(OWN)) == (7, 7)
    assert {p.candidate for p in ran if not p.heat} == {MODEL}
