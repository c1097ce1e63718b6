"""Several ideas of a round: each is tried, and the trials go to those that earn them."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.job_in_memory import Rows, steps
from testbed.repetitions import examples
from warpsmith.domain.jobs.job import RULES, Budget, Strategy
from warpsmith.domain.state import CandidateState, JobState, SliceEnd
from warpsmith.tuning.decisions.halving import half, parts, weight
from warpsmith.tuning.decisions.shares import LEAST_TRIALS, parents
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot
from warpsmith.tuning.decisions.task_history import ideas_in, is_exhausted
from warpsmith.tuning.tasks import Idea, SlicePayload, SliceResult, StepPayload, StepResult


@dataclass(frozen=True)
class Ran:
    """A slice that ran."""

    candidate: CandidateSummary
    payload: SlicePayload
    trials: int


def ran(end: JobSnapshot, round_: int = 1) -> list[Ran]:
    """The slices of a round, in order."""
    known = {c.id: c for c in end.candidates if c.round == round_}
    return [
        Ran(known[t.payload.candidate], t.payload, t.result.trials)
        for t in end.tasks
        if isinstance(t.payload, SlicePayload)
        and isinstance(t.result, SliceResult)
        and t.payload.candidate in known
    ]


def whole(rows: Rows, payload: SlicePayload) -> SliceResult:
    """A slice that runs all its trials."""
    return SliceResult(trials=payload.trials)


def job(ideas: int = 4, trials: int = 180, rounds: int = 1, **more: Any) -> Rows:
    """A job whose planner has so many ideas, of which later ones are better."""
    defaults: dict[str, Any] = {
        "provider": "external",
        "objective": lambda candidate: 1.0 - candidate.number / 100,
        "slice": whole,
    }
    return Rows(Budget(rounds=rounds, trials=trials), ideas=ideas, **(defaults | more))


@pytest.mark.parametrize(("n", "sizes"), [(2, [2, 1]), (5, [5, 2, 1]), (8, [8, 4, 2, 1]), (9, [9, 4, 2, 1])])
def test_half_of_the_contestants_go_on_and_have_twice_as_much_in_all(n: int, sizes: list[int]) -> None:
    found = [n]
    while found[-1] > 1:
        found.append(half(found[-1]))
    assert found == sizes
    assert parts(n) == sum(size * weight(rung) for rung, size in enumerate(sizes))
    assert [sum(weight(r) for r in range(k + 1)) for k in range(4)] == [1, 2, 4, 8]


def test_every_idea_has_its_heat_and_the_better_half_gets_more() -> None:
    end = job(ideas=4, trials=180).run()
    assert end.state is JobState.DONE
    # Four ideas and the rules: 5 heats of one part, 2 of one part, the rest of two parts.
    found = [(r.candidate.number, r.payload.heat, r.payload.rung, r.trials) for r in ran(end)]
    assert found == [
        *((n, True, 0, 20) for n in range(5)),
        (4, True, 1, 20),
        (3, True, 1, 20),
        (4, False, 0, 40),
    ]


def test_every_idea_has_a_templater_and_candidates_that_bear_its_name() -> None:
    end = job(ideas=3).run()
    asked = [(p.role, p.idea) for p in steps(end)]
    assert asked == [
        *((role, "") for role in ("tester", "profiler", "planner")),
        *(("templater", f"idea {n}") for n in range(3)),
        ("templater", ""),
    ]
    assert steps(end)[3].plan == "idea 0: it differs\ngo on"
    assert [ideas_in(end.tasks).get(c.made_by, "") for c in end.candidates] == [
        "idea 0",
        "idea 1",
        "idea 2",
        "",
    ]


def test_a_repair_follows_the_idea_of_its_template() -> None:
    def wrong(rows: Rows, payload: SlicePayload) -> SliceResult:
        if payload.candidate == "c0":
            return SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason="it is wrong")
        return whole(rows, payload)

    end = job(ideas=2, slice=wrong).run()
    assert [(p.role, p.idea) for p in steps(end)[3:6]] == [
        ("templater", "idea 0"),
        ("repairer", "idea 0"),
        ("templater", "idea 1"),
    ]
    assert [r.candidate.number for r in ran(end) if r.payload.rung == 0 and r.payload.heat] == [0, 1, 2, 3]


def test_the_trials_of_a_job_are_shared_by_its_rounds() -> None:
    end = job(ideas=2, trials=180, rounds=3).run()
    per_round = Counter({r: sum(x.trials for x in ran(end, r)) for r in (1, 2, 3)})
    assert per_round == {1: 60, 2: 60, 3: 60}


def test_an_idea_without_a_template_leaves_later_rounds_their_trials() -> None:
    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        nothing = (payload.role, payload.round, payload.idea) == ("templater", 2, "idea 1")
        return StepResult(provider="external", stop="no") if nothing else None

    end = job(ideas=2, trials=180, rounds=3, agent_step=step).run()
    assert [sum(r.trials for r in ran(end, n)) for n in (1, 2, 3)] == [60, 60, 60]


def test_no_more_ideas_are_asked_for_than_can_have_a_heat() -> None:
    def wanted(trials: int, rounds: int = 1, ideas: int = 8) -> int:
        end = job(ideas=ideas, trials=trials, rounds=rounds).run()
        return next(p.ideas for p in steps(end) if p.role == "planner")

    # With the rules beside them n ideas need 7 trials for each part that is given away.
    assert [wanted(LEAST_TRIALS * parts(n + 1)) for n in (2, 4, 8)] == [2, 4, 8]
    assert [wanted(LEAST_TRIALS * parts(n + 1) - 1) for n in (2, 4, 8)] == [1, 3, 7]
    assert wanted(3 * LEAST_TRIALS * parts(5), rounds=3) == 4
    assert wanted(1000, ideas=2) == 2


def test_the_rules_as_planner_have_one_plan() -> None:
    end = job(ideas=4, provider=RULES).run()
    assert [p.role for p in steps(end)] == ["tester", "profiler", "planner", "templater"]
    assert not any(r.payload.heat for r in ran(end))


def test_ideas_that_promise_nothing_get_no_template() -> None:
    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        if payload.role != "planner" or payload.round == 1:
            return None
        gains = {"good": 1.3, "noise": 1.001, "unknown": None}
        ideas = tuple(Idea(name=n, sentence="s", plan="p", expected_gain=g) for n, g in gains.items())
        return StepResult(provider="external", ideas=ideas)

    end = job(ideas=3, rounds=2, agent_step=step).run()
    asked = [p.idea for p in steps(end) if p.role == "templater" and p.round == 2]
    assert asked == ["good", "unknown"]


def test_a_branch_whose_planner_stops_leaves_the_rest_to_the_other() -> None:
    """What was asked to run a heat beside others gets the rest when no others come."""

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        if payload.role != "planner" or payload.round == 1:
            return None
        if any(p.role == "planner" and p.round == 2 for p in steps(rows.snapshot)):
            return StepResult(provider="external", stop="nothing")
        return StepResult(provider="external", ideas=(Idea(name="only", sentence="s", plan="p"),))

    end = job(ideas=2, rounds=2, parents=2, trials=200, agent_step=step).run()
    assert [(r.payload.heat, r.candidate.number) for r in ran(end, 2)] == [(True, 3), (False, 3)]
    assert end.trials_done == 200


def test_a_strategy_of_fixed_values_has_contests_without_the_rules() -> None:
    rows = job(ideas=4, trials=100)
    direct = rows.snapshot.job.model_copy(update={"strategy": Strategy.DIRECT})
    rows.snapshot = replace(rows.snapshot, job=direct)
    end = rows.run()
    assert len(end.candidates) == 4
    assert {p.provider for p in steps(end)} == {None}
    assert ran(end)[-1].candidate.number == 3


def test_parents_are_of_different_ideas_as_far_as_there_are_any() -> None:
    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        if payload.role != "planner":
            return None
        ideas = [Idea(name=n, sentence="s", plan="p") for n in ("tiles", "vectors")]
        return StepResult(provider="external", ideas=tuple(ideas[: payload.ideas]))

    # Of round 1: tiles, vectors, the rules. Of round 2 from two parents: tiles and vectors of each.
    quality = {0: 0.7, 1: 0.6, 2: 0.9, 3: 0.3, 4: 0.5, 5: 0.2, 6: 0.55}
    rows = job(
        ideas=2,
        parents=2,
        rounds=2,
        trials=400,
        agent_step=step,
        objective=lambda c: quality[c.number],
    )
    end = rows.run()
    assert [c.number for c in end.candidates if c.round == 2] == [3, 4, 5, 6]
    assert parents(end, 2) == ["c1", "c0"]
    assert parents(end, 3) == ["c5", "c4"], "c3 is second, but of the idea of c5"

    def chosen(count: int) -> list[str | None]:
        agents = end.job.agents.model_copy(update={"parents": count})
        return parents(replace(end, job=end.job.model_copy(update={"agents": agents})), 3)

    assert chosen(3) == ["c5", "c4", "c2"]
    assert chosen(5) == ["c5", "c4", "c2", "c3", "c6"]


@dataclass
class Luck:
    """Workers of whom only a number is known: the seed of what they bring."""

    seed: int

    def of(self, *what: object) -> random.Random:
        """A source of its own for each thing."""
        return random.Random(f"{self.seed} {what}")

    def objective(self, candidate: CandidateSummary) -> float:
        """Better with every slice."""
        return self.of(candidate.number).choice([0.3, 0.5, 0.8, 1.0]) / (1 + candidate.trials / 1000)

    def slice(self, rows: Rows, payload: SlicePayload) -> SliceResult:
        """All trials or some of them; a few spaces end, and a few templates are wrong."""
        luck = self.of("slice", len(rows.snapshot.tasks))
        kind = self.of("kind", payload.candidate).random()
        if kind < 0.1:
            return SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason="it is wrong")
        few = luck.randint(1, payload.trials)
        trials = luck.choice(
            [payload.trials, few if self.seed % 2 else min(payload.trials, LEAST_TRIALS - 1)]
        )
        if kind < 0.25:
            return SliceResult(trials=min(trials, 5), ended_by=SliceEnd.EXHAUSTED)
        return SliceResult(trials=trials)

    def step(self, rows: Rows, payload: StepPayload) -> StepResult | None:
        """Now and then an agent stops, names fewer ideas, or brings no template."""
        luck = self.of("step", len(rows.snapshot.tasks))
        if payload.role == "planner" and payload.round > 1 and luck.random() < 0.1:
            return StepResult(provider="external", stop="nothing")
        if payload.role == "planner" and payload.ideas > 1:
            names = luck.sample(["tiles", "vectors", "split", "pipeline", "layout"], 5)
            count = luck.randint(1, min(5, payload.ideas))
            ideas = tuple(Idea(name=n, sentence="s", plan="p") for n in names[:count])
            return StepResult(provider="external", ideas=ideas)
        if payload.role == "templater" and luck.random() < 0.1:
            return StepResult(provider=payload.provider or "external", stop="no")
        return None


def lines(end: JobSnapshot, round_: int) -> Iterator[list[CandidateSummary]]:
    """The templates of a round with their repairs."""
    asked = {t.id: t.payload for t in end.tasks if isinstance(t.payload, StepPayload)}
    groups: dict[tuple[object, ...], list[CandidateSummary]] = {}
    for c in end.candidates:
        made = asked[c.made_by]
        if c.round == round_:
            groups.setdefault((made.parent, made.idea, made.provider), []).append(c)
    yield from groups.values()


@given(
    seed=st.integers(0, 10**6),
    ideas=st.integers(1, 8),
    rounds=st.integers(1, 3),
    width=st.integers(1, 3),
    trials=st.integers(1, 600) | st.integers(20, 120),
)
@examples(150)
def test_successive_halving_is_fair_whatever_happens(
    seed: int, ideas: int, rounds: int, width: int, trials: int
) -> None:
    luck = Luck(seed)
    rows = job(
        ideas=ideas,
        trials=trials,
        rounds=rounds,
        parents=width,
        objective=luck.objective,
        slice=luck.slice,
        agent_step=luck.step,
    )
    end = rows.run(limit=2000)
    assert end.trials_done <= trials
    assert sum(c.trials for c in end.candidates) <= trials
    for round_ in range(1, rounds + 1 if ideas > 1 else 2):
        found = ran(end, round_)
        heats = [r for r in found if r.payload.heat]
        if not heats:
            continue
        rest = [r for r in found if not r.payload.heat]
        order = [r.payload.rung for r in heats]
        assert order == sorted(order), "nobody gets more before everybody has had a heat"
        assert found == heats + rest
        for rung in range(1, max(order) + 1):
            before, after = ({r.candidate.id for r in heats if r.payload.rung == n} for n in (rung - 1, rung))
            assert after <= before | {c.id for c in end.candidates if is_exhausted(end.tasks, c.id)}
            assert len(after) <= half(len(list(lines(end, round_))))
        over = end.trials_done >= trials
        for line in lines(end, round_):
            last = line[-1]
            # With one idea, a heat is cut by what later rounds are to have.
            if last.state is CandidateState.REJECTED or over or (ideas == 1 and rounds > 1):
                continue
            assert last.trials >= LEAST_TRIALS or is_exhausted(end.tasks, last.id), "it had no heat"
        winners = {r.candidate.id for r in rest}
        assert len(winners) <= 1
        if ideas > 1 and winners and not over:
            winner = next(c for c in end.candidates if c.id in winners)
            most = max(c.trials for c in end.candidates if c.round == round_)
            assert winner.trials == most or is_exhausted(end.tasks, winner.id)
