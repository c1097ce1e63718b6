"""A template that a verification withdraws is mended, searched and verified again, if the budget allows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from testbed.fakes import Fault, fake_ports
from testbed.job_in_memory import Rows, roles, steps
from tests.unit.tuning.test_tuning_loops import JOB, finalists, times
from warpsmith.domain.jobs.job import RULES, Budget, Job
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.reason import ReasonCode
from warpsmith.domain.state import CandidateState, JobState, SliceEnd, TaskKind, TaskState
from warpsmith.domain.templates.outcome import FailedCase, Stage, WrongElement
from warpsmith.domain.templates.space import configuration_key
from warpsmith.testing.jobs import noises, scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.extra_cases import further_cases
from warpsmith.tuning.decisions.decide import MAX_REPAIRS, decide
from warpsmith.tuning.decisions.end_reason import reason_of
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, SetJobState
from warpsmith.tuning.decisions.withdrawals import rejections_in, standing, verifications
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import (
    Choice,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
    Withdrawal,
)
from warpsmith.tuning.winners.finalists import Finalist
from warpsmith.tuning.winners.verify import ComparisonPlan, verify_winners

BASE = measure_baseline(DeviceSession(JOB, fake_ports(times)[0]))
NOT_FURTHER = {Family.DECLARED, Family.EDGE_CASE}
CASE = FailedCase(
    shape="n=70",
    family="world",
    kind="scalars",
    scalars={"stride": 3},
    wrong=(WrongElement(output="y", element=69, got="nan", want="1.5"),),
)
WORDS = "with inputs by lot (scalars: stride 3) at n=70: wrote outside scales"
BUDGET = Budget(rounds=1, trials=60, seconds=600)
BEST = {"BLOCK": 256, "PER": 1}


def fell(candidate: str, stage: Stage = Stage.GUARD) -> Withdrawal:
    return Withdrawal(
        words=WORDS, candidate=candidate, configuration=BEST, workload="n=4096", stage=stage, case=CASE
    )


def verified(winner: str | None = None, speedup: float = 1.0, *fallen: Withdrawal) -> VerifyResult:
    choice = Choice(workload="n=4096", candidate=winner, configuration=None if winner is None else BEST)
    return VerifyResult(comparisons=(), choices=(choice,), speedup=speedup, withdrawn=fallen)


def job(
    *results: VerifyResult, objectives: dict[int, float] | None = None, trials: int = 9, **changes: Any
) -> Rows:
    """A job whose verifications bring these results, one after the other; its templates are a model's."""
    left = list(results)
    known = {0: 1 / 2.38, 2: 1 / 2.0} | (objectives or {})

    def verify(rows: Rows, payload: VerifyPayload) -> VerifyResult:
        return left.pop(0)

    def search(rows: Rows, payload: SlicePayload) -> SliceResult:
        return SliceResult(trials=min(trials, payload.trials), ended_by=SliceEnd.EXHAUSTED)

    def objective(candidate: CandidateSummary) -> float:
        return known.get(candidate.number, 0.99)

    fields: dict[str, Any] = {"slice": search, "provider": "model", "budget": BUDGET} | changes
    return Rows(verify=verify, objective=objective, **fields)


def verifications_of(end: JobSnapshot) -> int:
    return sum(t.kind is TaskKind.VERIFY for t in end.tasks)


def sentence(end: JobSnapshot) -> tuple[ReasonCode, str]:
    found = reason_of(end, JobState.DONE, "")
    assert found is not None
    return found.code, found.sentence


def test_a_withdrawn_template_is_mended_searched_and_verified_again() -> None:
    end = job(verified(None, 1.0, fell("c0")), verified("c2", 1.97)).run()
    assert end.state is JobState.DONE
    assert [c.state.value for c in end.candidates] == ["rejected", "searched", "searched"]
    (repair,) = [p for p in steps(end) if p.role == "repairer"]
    assert (repair.rejected, repair.attempt, repair.round) == ("c0", 1, 1)
    assert f"(2.38x in the search) was withdrawn: n=4096: {str(fell('c0')).split(': ', 1)[1]}" in (
        repair.failure
    )
    assert "shape n=70; world inputs (scalars); stride = 3; y[69] is nan, wanted 1.5" in repair.failure
    assert verifications_of(end) == 2
    stands = standing(verifications(end.tasks))
    assert stands is not None
    assert stands.speedup == 1.97
    code, words = sentence(end)
    assert code is ReasonCode.GAIN
    assert words == (
        "1.97x: 1 of 1 workloads faster than before; the best configuration (2.38x in the search) was "
        f"withdrawn: guard: {WORDS}; repaired once, 1.97x"
    )
    assert rejections_in(end.tasks)["c0"] == str(fell("c0"))


def test_the_first_verification_stands_if_nothing_better_comes() -> None:
    first, second = verified("c1", 1.5, fell("c0")), verified("c1", 1.4)
    end = job(first, second, objectives={1: 1 / 1.5}).run()
    assert verifications_of(end) == 2
    assert standing(verifications(end.tasks)) == first
    assert "repaired once, 1.50x" in sentence(end)[1]
    worse = job(first, objectives={1: 1 / 1.5, 2: 1 / 1.3}).run()
    assert verifications_of(worse) == 1, "what was mended promises less than what stands"
    assert worse.state is JobState.DONE


def test_a_choice_that_falls_later_stands_no_more() -> None:
    later = verified("c2", 1.2, fell("c1"))
    assert standing([verified("c1", 1.5, fell("c0")), later]) == later
    equal = verified(None, 1.0)
    assert standing([equal, verified("c2", 1.0)]) is equal
    assert standing([]) is None


def test_repairs_are_limited_and_each_is_verified() -> None:
    results = [
        verified(None, 1.0, fell("c0")),
        verified(None, 1.0, fell("c2")),
        verified(None, 1.0, fell("c3")),
    ]
    end = job(*results, objectives={3: 1 / 1.9}).run()
    assert end.state is JobState.DONE
    assert roles(end).count("repairer") == MAX_REPAIRS
    assert verifications_of(end) == 1 + MAX_REPAIRS
    code, words = sentence(end)
    assert code is ReasonCode.NOT_CONFIRMED
    assert "(2.38x in the search) was withdrawn: guard: " in words
    assert words.endswith("repaired twice, 1.00x")


def test_a_mended_template_that_fails_its_gate_leaves_what_stands() -> None:
    def search(rows: Rows, payload: SlicePayload) -> SliceResult:
        if payload.candidate in ("c0", "c1"):
            return SliceResult(trials=9, ended_by=SliceEnd.EXHAUSTED)
        return SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason="wrong")

    end = job(verified("c1", 1.1, fell("c0")), objectives={1: 1 / 1.1}, slice=search).run()
    assert end.state is JobState.DONE
    assert roles(end).count("repairer") == MAX_REPAIRS
    assert verifications_of(end) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"slice": lambda rows, payload: SliceResult(trials=payload.trials)},
        {"provider": RULES},
    ],
    ids=["no trials are left", "the rules would make the same"],
)
def test_where_no_repair_can_be_the_job_ends_as_ever(changes: dict[str, Any]) -> None:
    end = job(verified(None, 1.0, fell("c0")), **changes).run()
    assert end.state is JobState.DONE
    assert "repairer" not in roles(end)
    assert CandidateState.REJECTED not in {c.state for c in end.candidates}
    code, words = sentence(end)
    assert code is ReasonCode.NOT_CONFIRMED
    assert words == f"the best configuration (2.38x in the search) was withdrawn: guard: {WORDS}"


def test_a_job_without_seconds_ends_as_ever() -> None:
    rows = job(verified(None, 1.0, fell("c0")), verified("c2", 1.97))
    spent = replace(rows.run(), state=JobState.VERIFYING, elapsed_s=0.0)
    place = next(n for n, t in enumerate(spent.tasks) if t.kind is TaskKind.VERIFY)
    now = replace(
        spent,
        tasks=spent.tasks[: place + 1],
        candidates=[replace(c, state=CandidateState.SEARCHED) for c in spent.candidates[:2]],
        trials_done=18,
    )
    assert len(decide(now)) == 3
    assert decide(now) == decide(now)
    for elapsed_s in (
        560.0,
        340.0,
    ):  # a verification that took 340 s will not fit into the 260 s that are left
        (end,) = decide(replace(now, elapsed_s=elapsed_s))
        assert isinstance(end, SetJobState)
        assert end.state is JobState.DONE


@pytest.mark.parametrize("stage", [Stage.TIMING, Stage.FLOOR, Stage.COMPILE])
def test_what_falls_for_noise_or_a_clock_is_not_mended(stage: Stage) -> None:
    end = job(verified(None, 1.0, fell("c0", stage))).run()
    assert "repairer" not in roles(end)
    assert verifications_of(end) == 1


def test_a_template_that_still_serves_is_not_mended() -> None:
    end = job(verified("c0", 2.0, fell("c0"))).run()
    assert "repairer" not in roles(end)


def test_where_the_rules_fall_a_round_that_is_left_is_begun() -> None:
    """Nothing was worth a second round, since the wrong template looked as if it were at its end."""

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        before = not any(t.kind is TaskKind.VERIFY for t in rows.snapshot.tasks)
        stops = payload.role == "planner" and payload.round == 2 and before
        return StepResult(provider=RULES, stop="at the floor") if stops else None

    rounds = Budget(rounds=3, trials=60, seconds=600)
    rows = job(
        verified(None, 1.0, fell("c0")), verified("c1", 1.5),
        agent_step=step, provider=RULES, budget=rounds, objectives={1: 1 / 1.5},
    )  # fmt: skip
    end = rows.run()
    assert end.state is JobState.DONE
    assert [(c.round, c.state.value) for c in end.candidates] == [(1, "rejected"), (3, "searched")]
    assert [p.parent for p in steps(end) if p.round == 3] == [None] * 3, "what was withdrawn is no parent"
    assert "repairer" not in roles(end)


def test_a_step_that_is_given_up_late_leaves_what_stands() -> None:
    rows = job(verified("c1", 1.1, fell("c0")), verified("c2", 1.97), objectives={1: 1 / 1.1})
    end = rows.run()
    place = next(n for n, t in enumerate(end.tasks) if t.kind is TaskKind.VERIFY) + 1
    dead = replace(end.tasks[place], state=TaskState.DEAD, result=None, error="3 attempts")
    now = replace(end, state=JobState.PLANNING, tasks=(*end.tasks[:place], dead))
    (last,) = decide(now)
    assert isinstance(last, SetJobState)
    assert (last.state, last.detail[:5]) == (JobState.DONE, "1.10x")


def two_templates() -> list[Finalist]:
    """Trials of `c0` in blocks of 256, the best on the large workload, and one of `c1` in blocks of 128."""
    found, _ = finalists()
    of_c0 = [f for f in found if f.configuration["BLOCK"] == 256]
    return of_c0 + [replace(f, candidate="c1") for f in found if f.configuration == {"BLOCK": 128, "PER": 1}]


def elected(
    fault: Fault, job_: Job = JOB, of: Sequence[Finalist] | None = None
) -> tuple[VerifyResult, Choice]:
    ports, _ = fake_ports(times, fault)
    some = two_templates() if of is None else of
    result = verify_winners(job_, ports, some, ComparisonPlan(4, noises(0.001)), lambda: True, BASE)
    return result, next(c for c in result.choices if c.workload == "n=4096")


def test_after_a_fault_another_template_has_its_turn() -> None:
    result, choice = elected(lambda c: "wrong" if c["BLOCK"] == 256 else "")
    assert (choice.candidate, choice.configuration) == ("c1", {"BLOCK": 128, "PER": 1})
    fallen = [w for w in result.withdrawn if w.workload == "n=4096"]
    assert [w.configuration for w in fallen] == [{"BLOCK": 256, "PER": n} for n in (1, 2)]
    assert {(w.candidate, w.stage, w.is_fault) for w in fallen} == {("c0", Stage.CORRECTNESS, True)}
    case = fallen[0].case
    assert case is not None
    assert (case.shape, case.family) == ("n=4096", "declared")
    assert [w.output for w in case.wrong] == ["y"] * len(case.wrong) and case.wrong
    assert all(w.got != w.want for w in case.wrong)


def test_a_configuration_of_the_same_template_that_is_right_and_faster_serves_nevertheless() -> None:
    result, choice = elected(lambda c: "wrong" if c == {"BLOCK": 256, "PER": 1} else "")
    assert (choice.candidate, choice.configuration) == ("c0", {"BLOCK": 256, "PER": 2})
    (found,) = (c for c in result.comparisons if c.workload == "n=4096")
    assert found.configuration_key == configuration_key({"BLOCK": 256, "PER": 2})


def test_a_table_of_one_configuration_that_falls_makes_room_for_another_template() -> None:
    one = scale_job(objective={"configurations": 1}, workloads=[{"dimensions": {"n": 4096}}])
    found = [
        replace(f, outcome=f.outcome.model_copy(update={"timings": f.outcome.timings[:1]}))
        for f in two_templates()
    ]
    result, choice = elected(lambda c: "wrong" if c["BLOCK"] == 256 else "", one, found)
    assert (choice.candidate, choice.configuration) == ("c1", {"BLOCK": 128, "PER": 1})
    assert {w.candidate for w in result.withdrawn} == {"c0"}


def test_the_gate_tries_every_family_of_every_workload() -> None:
    """As the verification does, so that what one of them shows is not found when the budget is spent."""
    session = DeviceSession(JOB, fake_ports(times)[0])
    baseline = measure_baseline(session)
    session.baseline.learn(baseline)
    template = session.inputs.user_template
    kernel = template.configured(JOB.space.defaults)
    cases = list(further_cases(session, template, kernel, JOB.workloads))
    each = {w.key: {c.family for c in cases if c.workload.key == w.key} for w in JOB.workloads}
    known = {
        w.key: {c.family for c in baseline.cases if c.dimensions == w.dimensions} - NOT_FURTHER
        for w in JOB.workloads
    }
    assert each == known
    assert all(len(families) > 2 for families in each.values())
