"""A job that ends says which end it was."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import Budget
from warpsmith.domain.reason import Reason, ReasonCode
from warpsmith.domain.state import CandidateState, JobState, SliceEnd, TaskKind, TaskState
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule, not_permitted
from warpsmith.domain.templates.outcome import (
    Comparison,
    Interval,
    Stage,
    TimeSummary,
    Verdict,
    WorkloadTiming,
)
from warpsmith.domain.templates.space import Parameter
from warpsmith.domain.templates.template import AppliedRule, RuleFault, Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.decisions.end_reason import reason_of
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot, TaskView
from warpsmith.tuning.tasks import (
    BaselineResult,
    Choice,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
    Withdrawal,
)

JOB = scale_job(
    parameters=[], kernel=scale_job().kernel.model_dump() | {"launch": {"grid": [8], "block": [64]}}
)
CHANGED = Template(
    kernel=JOB.kernel,
    space=JOB.space.model_copy(update={"parameters": (Parameter(name="WS_UNROLL", values=(1, 2, 4)),)}),
    applied=(AppliedRule(rule="unroll", parameters=("WS_UNROLL",)),),
)
PLAIN = Template(kernel=JOB.kernel)
DECLINED = (
    not_permitted("block_size"),
    DeclinedRule(rule="lift_constants", code=DeclineCode.FORM, reason="no constant is lifted"),
    DeclinedRule(rule="vector_width", code=DeclineCode.FORM, reason="y is not read in steps of the thread"),
    DeclinedRule(rule="row_split", code=DeclineCode.LAUNCH, reason="there is one row a group"),
)


def candidate(number: int = 0, **changes: Any) -> CandidateSummary:
    made = CandidateSummary(
        id=f"c{number}",
        number=number,
        round=1,
        state=CandidateState.SEARCHED,
        made_by=f"step{number}",
        trials=12,
        measured=12,
        best_objective=0.999,
        feasible=12,
    )
    return replace(made, **changes)


def step(number: int, template: Template, declined: tuple[DeclinedRule, ...] = DECLINED) -> TaskView:
    result = StepResult(provider="rules", template=template, declined=declined)
    payload = StepPayload(role="templater", round=1)
    return TaskView(f"step{number}", TaskKind.AGENT_STEP, TaskState.DONE, payload, result)


def verified(
    *, speedup: float = 1.0, winner: str | None = None, left_s: float = 40.0, **changes: Any
) -> TaskView:
    choices = (Choice(workload="n=4096", candidate=winner),)
    fields: dict[str, Any] = {"comparisons": (), "choices": choices, "speedup": speedup}
    result = VerifyResult(**(fields | changes))
    return TaskView("v", TaskKind.VERIFY, TaskState.DONE, VerifyPayload(seconds=left_s), result)


def compared(estimate: float, verdict: Verdict = Verdict.EQUAL) -> Comparison:
    return Comparison(
        workload="n=4096",
        configuration_key="0",
        baseline_us=10.0,
        best_us=10.0 / estimate,
        speedup=Interval(estimate=estimate, low=estimate - 0.02, high=estimate + 0.02),
        verdict=verdict,
        cache="cold",
        pairs=6,
    )


def ended(
    *tasks: TaskView,
    candidates: tuple[CandidateSummary, ...] = (),
    state: JobState = JobState.DONE,
    detail: str = "",
    trials: int = 12,
    baseline: dict[str, Any] | None = None,
    budget: Budget | None = None,
    reused: int = 0,
) -> Reason:
    first = BaselineResult(device=DEVICE, **(baseline or {}))
    job = JOB.model_copy(update={"budget": budget or Budget(trials=100, seconds=60)})
    view = TaskView("b", TaskKind.BASELINE, TaskState.DONE, None, first)
    snapshot = JobSnapshot(
        job, JobState.VERIFYING, "x", (), 30.0, trials, (view, *tasks), candidates, reused=reused
    )
    found = reason_of(snapshot, state, detail)
    assert found is not None
    assert found == reason_of(snapshot, state, detail)
    return found


def test_a_gain_is_called_one() -> None:
    found = ended(step(0, CHANGED), verified(speedup=1.3, winner="c0"), candidates=(candidate(),))
    assert found.is_gain
    assert found.sentence == "1.30x: 1 of 1 workloads faster than before"
    assert found.search == "12 of 12 configurations tried"


def test_where_no_rule_applied_the_nearest_is_named() -> None:
    found = ended(step(0, PLAIN), verified(), candidates=(candidate(trials=1),), trials=1)
    assert found.code is ReasonCode.NO_RULE
    assert found.sentence.endswith("the nearest was vector_width: y is not read in steps of the thread")


def rejected(number: int, words: str, *rules: str) -> TaskView:
    payload = SlicePayload(candidate=f"c{number}", trials=1, seconds=10)
    reason = words.partition(": ")[2]
    faults = tuple(RuleFault(rule=r, stage=Stage.COMPILE, reason=reason) for r in rules)
    result = SliceResult(ended_by=SliceEnd.REJECTED, reason=words, faults=faults)
    return TaskView(f"s{number}", TaskKind.SLICE, TaskState.DONE, payload, result)


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED])
def test_a_template_that_failed_never_looks_like_a_good_kernel(state: JobState) -> None:
    """Both tries hold the rule; the kernel as it is was measured then, or nothing was."""
    refused = [candidate(n, state=CandidateState.REJECTED, measured=0, best_objective=None) for n in (0, 1)]
    found = ended(
        step(0, CHANGED), rejected(0, "compile: expected ')'"),
        step(1, CHANGED), rejected(1, "compile: expected ')'"),
        step(2, PLAIN), verified(),
        candidates=(*refused, candidate(2, trials=1)), state=state,
    )  # fmt: skip
    assert found.code is ReasonCode.TEMPLATE_FAILED
    assert "the fault is ours" in found.sentence
    assert "expected ')'" in found.sentence
    assert not found.is_gain


def test_a_rule_that_was_left_out_for_its_fault_is_named_in_every_end() -> None:
    fault = "restrict: our rewrite did not compile: expected ')'"
    first = (step(0, CHANGED), rejected(0, "compile: expected ')'", "restrict"))
    of_first = candidate(0, state=CandidateState.REJECTED)
    failed = RuleFault(rule="restrict", stage=Stage.COMPILE, reason="expected ')'")
    mended, both = step(1, CHANGED, (*DECLINED, failed.declined)), (of_first, candidate(1))
    nothing = (of_first, candidate(1, trials=1))
    only = ended(*first, step(1, PLAIN), verified(), candidates=nothing, trials=2)
    assert only.code is ReasonCode.TEMPLATE_FAILED
    assert fault in only.sentence
    besides = ended(*first, mended, verified(), candidates=both)
    assert besides.code is ReasonCode.BEST_AS_IS
    assert fault in besides.sentence
    gain = ended(*first, mended, verified(speedup=1.2, winner="c1"), candidates=both)
    assert gain.is_gain
    assert fault in gain.sentence


def test_noise_is_a_reason_where_it_hides_what_might_be_gained() -> None:
    one = (candidate(best_objective=1 / 1.08),)
    found = ended(step(0, CHANGED), verified(), candidates=one, baseline={"aa_width": 0.13})
    assert found.code is ReasonCode.TOO_NOISY
    assert "differ by 13% among themselves (A/A); the search's best was 1.08x" in found.sentence
    quiet = ended(step(0, CHANGED), verified(), candidates=(candidate(),), baseline={"aa_width": 0.01})
    assert quiet.code is ReasonCode.BEST_AS_IS


def test_a_gain_that_was_not_confirmed_says_what_was_measured() -> None:
    one = (candidate(best_objective=1 / 1.2),)
    tasks = step(0, CHANGED), verified(comparisons=(compared(1.01),))
    found = ended(*tasks, candidates=one, baseline={"aa_width": 0.01})
    assert found.code is ReasonCode.NOT_CONFIRMED
    assert "best was 1.20x; measured again in fresh processes it is 1.01x (95 % interval 0.99 to 1.03)" in (
        found.sentence
    )
    fallen = Withdrawal(
        words="y is wrong",
        candidate="c0",
        configuration={},
        workload="n=4096",
        stage=Stage.CORRECTNESS,
    )
    withdrawn = verified(withdrawn=(fallen,))
    found = ended(step(0, CHANGED), withdrawn, candidates=one)
    assert found.code is ReasonCode.NOT_CONFIRMED
    assert "y is wrong" in found.sentence


@pytest.mark.parametrize(
    ("budget", "left_s", "words"),
    [
        (Budget(trials=12, seconds=60), 40.0, "the budget of 12 trials is spent"),
        (Budget(trials=500, seconds=60), 5.0, "the budget of 60 seconds is spent"),
    ],
)
def test_a_spent_budget_says_how_much_was_tried(budget: Budget, left_s: float, words: str) -> None:
    one = (candidate(feasible=560),)
    found = ended(step(0, CHANGED), verified(left_s=left_s), candidates=one, budget=budget)
    assert found.code is ReasonCode.BUDGET_SPENT
    assert found.search == f"12 of 560 configurations tried; {words}"
    all_of_them = (candidate(feasible=12),)
    found = ended(step(0, CHANGED), verified(left_s=left_s), candidates=all_of_them, budget=budget)
    assert found.code is ReasonCode.BEST_AS_IS
    assert "the best of 12 configurations" in found.sentence


def test_a_kernel_at_the_floor_is_told_so() -> None:
    ceilings = Ceilings(cold_bytes_per_s=1e12, hot_bytes_per_s=4e12, flops_per_s=1e13, launch_us=10.0)
    time = TimeSummary(median_us=10.1, low_us=10.0, high_us=10.3, samples=9, launches_per_sample=1)
    timings = tuple(WorkloadTiming(workload=w.key, cold=time) for w in JOB.workloads)
    measured = {"ceilings": ceilings, "timings": timings}
    found = ended(step(0, CHANGED), verified(), candidates=(candidate(),), baseline=measured)
    assert found.code is ReasonCode.AT_FLOOR
    assert "what memory and launches of this device allow" in found.sentence


def test_a_baseline_that_took_the_budget_is_named() -> None:
    words = "no configuration was tried (the budget of 60 seconds is spent); raise budget.seconds"
    tight = Budget(trials=100, seconds=35)
    found = ended(state=JobState.FAILED, detail=words, trials=0, baseline={"seconds": 31.0}, budget=tight)
    assert found.code is ReasonCode.BUDGET_SPENT
    assert "the baseline took 31 s of it" in found.sentence
    assert found.search == ""


def test_a_refused_kernel_and_a_task_given_up_are_told_apart() -> None:
    refused = "n=4096: the kernel fails: y is wrong"
    found = ended(state=JobState.FAILED, detail=refused, trials=0, baseline={"refused": refused})
    assert (found.code, found.sentence) == (ReasonCode.KERNEL_REFUSED, refused)
    dead = TaskView("d", TaskKind.SLICE, TaskState.DEAD, None, None, error="3 attempts")
    found = ended(dead, state=JobState.FAILED, detail="slice was given up: 3 attempts")
    assert (found.code, found.sentence) == (ReasonCode.GIVEN_UP, "slice was given up: 3 attempts")


def test_the_documents_name_every_end() -> None:
    text = (Path(__file__).parents[3] / "docs" / "results.md").read_text()
    assert {c.value for c in ReasonCode} == set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) - {"code"}


def test_a_job_that_was_cancelled_needs_no_reason() -> None:
    snapshot = JobSnapshot(JOB, JobState.SEARCHING, "x", (), 30.0, 0, (), ())
    assert reason_of(snapshot, JobState.CANCELLED, "cancelled on request") is None
    assert reason_of(replace(snapshot, tasks=()), JobState.FAILED, "lost") == Reason(
        code=ReasonCode.GIVEN_UP, sentence="lost"
    )


def exhausted(number: int = 0) -> TaskView:
    payload = SlicePayload(candidate=f"c{number}", trials=12, seconds=60)
    result = SliceResult(trials=12, seconds=9.0, ended_by=SliceEnd.EXHAUSTED)
    return TaskView(f"slice{number}", TaskKind.SLICE, TaskState.DONE, payload, result)


def test_a_search_of_a_part_says_that_there_is_more() -> None:
    task = exhausted()
    assert isinstance(task.result, SliceResult)
    part = replace(task, result=task.result.model_copy(update={"sampled": True}))
    one = (candidate(feasible=200_000),)
    found = ended(step(0, CHANGED), part, verified(speedup=1.3, winner="c0"), candidates=one)
    words = "12 of at least 200000 configurations tried; the search expected no further gain"
    assert found.search == words


def test_a_search_that_ends_by_itself_says_so() -> None:
    one = (candidate(feasible=560),)
    found = ended(step(0, CHANGED), exhausted(), verified(speedup=1.3, winner="c0"), candidates=one)
    assert found.search == "12 of 560 configurations tried; the search expected no further gain"
    whole = (candidate(feasible=12),)
    found = ended(step(0, CHANGED), exhausted(), verified(speedup=1.3, winner="c0"), candidates=whole)
    assert found.search == "12 of 12 configurations tried"


@pytest.mark.parametrize(
    ("measured", "code"),
    [(1, ReasonCode.ALL_REFUSED), (0, ReasonCode.ALL_REFUSED), (2, ReasonCode.BEST_AS_IS)],
)
def test_a_job_whose_configurations_were_refused_says_so_first(measured: int, code: ReasonCode) -> None:
    found = ended(step(0, CHANGED), verified(), candidates=(candidate(measured=measured),))
    assert found.code is code
    assert (f"{12 - measured} of 12 configurations were refused" in found.sentence) is (measured < 2)


def test_a_job_whose_configurations_were_refused_quotes_a_refusal() -> None:
    payload = SlicePayload(candidate="c0", trials=12, seconds=60)
    result = SliceResult(trials=12, refusal="correctness: y is wrong: element 8192 is 448, wanted 0.0")
    slice_ = TaskView("slice0", TaskKind.SLICE, TaskState.DONE, payload, result)
    found = ended(step(0, CHANGED), slice_, verified(), candidates=(candidate(measured=1),))
    assert found.code is ReasonCode.ALL_REFUSED
    assert "failed a check, for instance by correctness: y is wrong: element 8192 is 448" in found.sentence


def test_a_kernel_that_was_best_comes_with_the_interval_of_the_next_best() -> None:
    tasks = step(0, CHANGED), verified(comparisons=(compared(1.0),))
    found = ended(*tasks, candidates=(candidate(),), baseline={"aa_width": 0.01})
    assert found.code is ReasonCode.BEST_AS_IS
    assert "; beside it the next best is 1.00x (95 % interval 0.98 to 1.02)" in found.sentence


def test_a_gain_that_was_not_confirmed_names_the_margin_that_it_needed() -> None:
    one = (candidate(best_objective=1 / 1.2),)
    measured = compared(1.19).model_copy(
        update={"speedup": Interval(estimate=1.19, low=1.05, high=1.24), "aa_width": 0.06}
    )
    quiet = {"aa_width": 0.06, "aa_widths": {"n=4096": 0.06, "n=1001": 0.01}}
    found = ended(step(0, CHANGED), verified(comparisons=(measured,)), candidates=one, baseline=quiet)
    assert found.code is ReasonCode.NOT_CONFIRMED
    assert found.sentence.endswith(
        "1.19x (95 % interval 1.05 to 1.24); all of it must exceed 1.06x, the noise of n=4096"
    )


def test_results_of_earlier_jobs_are_named_beside_what_was_tried() -> None:
    one = (candidate(feasible=18, trials=1, measured=18),)
    tasks = step(0, CHANGED), exhausted(), verified(speedup=1.3, winner="c0")
    found = ended(*tasks, candidates=one, trials=1, reused=17)
    assert found.search == "1 of 18 configurations tried and 17 reused from earlier jobs"
