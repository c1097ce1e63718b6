"""`decide` drives a job from its rows alone; here the rows live in a list."""

from dataclasses import replace
from typing import Any

import pytest

from testbed.job_in_memory import Answer, Rows, roles, steps
from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import Budget, Strategy
from warpsmith.domain.jobs.plan import Family
from warpsmith.domain.state import CandidateState, JobState, SliceEnd, TaskKind, TaskState
from warpsmith.domain.templates.outcome import TimeSummary, WorkloadTiming
from warpsmith.testing.jobs import DEVICE
from warpsmith.tuning.decisions.decide import MAX_REPAIRS, decide
from warpsmith.tuning.decisions.snapshot import (
    SetJobState,
    TaskView,
)
from warpsmith.tuning.decisions.time_budget import CHECKS_SHARE, DEVICE_EACH_S, first_batch_s
from warpsmith.tuning.tasks import (
    BaselinePayload,
    BaselineResult,
    CasesPayload,
    Profile,
    ProposedCase,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
    VerifyPayload,
)

WRONG = SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason="wrong")


def test_a_job_runs_from_baseline_to_verification() -> None:
    rows = Rows(Budget(rounds=1, trials=20))
    end = rows.run()
    assert end.state is JobState.DONE
    assert end.trials_done == 20
    assert rows.kinds == ["baseline", *["agent_step"] * 4, "slice", "slice", "slice", "verify"]
    assert roles(end) == ["tester", "profiler", "planner", "templater"]


def test_rounds_share_the_trials_and_each_begins_with_a_plan() -> None:
    rows = Rows(Budget(rounds=3, trials=60))
    end = rows.run()
    assert [c.trials for c in end.candidates] == [20, 20, 20]
    each = ["profiler", "planner", "templater"]
    assert roles(end) == ["tester", *each, *each, *each]
    assert end.tasks[-1].kind is TaskKind.VERIFY


def test_a_planner_that_stops_ends_the_search() -> None:
    rows = Rows(Budget(rounds=5, trials=50), agent_step=planner(stop="nothing to gain"))
    end = rows.run()
    assert end.state is JobState.DONE
    assert len(end.candidates) == 1


def planner(first: int = 2, **said: Any) -> Answer[StepPayload]:
    """Answers of a planner from a round on; all else is answered as by default."""

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        mine = payload.role == "planner" and payload.round >= first
        return StepResult(provider="rules", **said) if mine else None

    return step


def test_what_is_expected_before_anything_was_measured_ends_nothing() -> None:
    rows = Rows(Budget(rounds=1, trials=20), agent_step=planner(first=1, plan="x", expected_gain=1.0))
    end = rows.run()
    assert end.state is JobState.DONE
    assert [p.plan for p in steps(end) if p.role == "templater"] == ["x"]
    nothing = Rows(Budget(rounds=2, trials=20), agent_step=planner(first=1, stop="no rule applies")).run()
    assert nothing.state is JobState.FAILED


def test_the_trials_that_agents_leave_go_to_the_best_candidate() -> None:
    stops = planner(stop="nothing to gain")
    end = Rows(Budget(rounds=5, trials=50), agent_step=stops).run()
    assert [c.trials for c in end.candidates] == [50]
    first = next(t.payload for t in end.tasks if isinstance(t.payload, SlicePayload))
    assert first.trials == 10, "a fifth for the first of five rounds"
    exhausted = Rows(
        Budget(rounds=5, trials=50),
        agent_step=stops,
        slice=lambda r, p: SliceResult(trials=3, ended_by=SliceEnd.EXHAUSTED),
    )
    assert exhausted.run().trials_done == 3


@pytest.mark.parametrize(("gain", "candidates"), [(None, 3), (1.2, 3), (1.005, 1), (0.9, 1)])
def test_a_round_that_promises_no_gain_is_not_begun(gain: float | None, candidates: int) -> None:
    rows = Rows(Budget(rounds=3, trials=60), agent_step=planner(plan="x", expected_gain=gain))
    end = rows.run()
    assert end.state is JobState.DONE
    assert len(end.candidates) == candidates


@pytest.mark.parametrize(("noise", "gain", "candidates"), [(0.04, 1.03, 1), (0.02, 1.03, 3), (0.5, 1.1, 3)])
def test_a_gain_within_the_noise_of_the_device_is_none(noise: float, gain: float, candidates: int) -> None:
    noisy = BaselineResult(device=DEVICE, aa_width=noise)
    step = planner(plan="x", expected_gain=gain)
    rows = Rows(Budget(rounds=3, trials=60), agent_step=step, baseline=lambda r, p: noisy)
    assert len(rows.run().candidates) == candidates


def test_each_round_starts_from_the_best_candidates() -> None:
    objectives = {0: 0.9, 1: 0.7, 2: 0.8, 3: 0.6}
    rows = Rows(Budget(rounds=3, trials=60), parents=2, objective=lambda c: objectives.get(c.number, 1.0))
    end = rows.run()
    assert end.state is JobState.DONE
    opened = [(p.round, p.parent) for p in steps(end) if p.role == "profiler"]
    assert opened == [(1, None), (2, "c0"), (3, "c1"), (3, "c0")]
    assert [c.trials for c in end.candidates] == [12, 16, 16, 16]


def test_a_branch_that_ends_leaves_the_others_to_go_on() -> None:
    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        stops = payload.role == "planner" and payload.parent == "c1"
        return StepResult(provider="rules", stop="no") if stops else None

    objectives = {0: 0.9, 1: 0.7}
    rows = Rows(
        Budget(rounds=3, trials=90),
        parents=2,
        agent_step=step,
        objective=lambda c: objectives.get(c.number, 1),
    )
    end = rows.run()
    assert [(p.round, p.parent) for p in steps(end) if p.role == "planner"] == [
        (1, None),
        (2, "c0"),
        (3, "c1"),
        (3, "c0"),
    ]
    assert len(end.candidates) == 3


def test_a_repair_stays_in_its_branch() -> None:
    def slice_(rows: Rows, payload: SlicePayload) -> SliceResult | None:
        return WRONG if payload.candidate == "c3" else None

    objectives = {0: 0.5, 1: 0.7}
    rows = Rows(
        Budget(rounds=3, trials=90),
        parents=2,
        slice=slice_,
        objective=lambda c: objectives.get(c.number, 0.9),
    )
    end = rows.run()
    (repair,) = [p for p in steps(end) if p.role == "repairer"]
    assert (repair.round, repair.parent, repair.rejected) == (3, "c1", "c3")
    assert [p.parent for p in steps(end) if p.round == 3 and p.role == "profiler"] == ["c0", "c1"]


def test_what_the_tester_asks_for_is_tried_on_the_kernel_first() -> None:
    wanted = (ProposedCase(dimensions={"n": 65}, family=Family.DECLARED),)

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        return StepResult(provider="rules", cases=wanted) if payload.role == "tester" else None

    rows = Rows(Budget(trials=5), agent_step=step)
    end = rows.run()
    assert rows.kinds[:4] == ["baseline", "agent_step", "check_cases", "agent_step"]
    assert end.tasks[2].payload == CasesPayload(cases=wanted)
    assert end.state is JobState.DONE


def test_a_profile_is_handed_to_planner_and_templater() -> None:
    found = Profile(bottleneck="latency", hypotheses=("x",))

    def step(rows: Rows, payload: StepPayload) -> StepResult | None:
        return StepResult(provider="rules", profile=found) if payload.role == "profiler" else None

    end = Rows(Budget(rounds=2, trials=20), agent_step=step).run()
    assert {p.role for p in steps(end) if p.profile == found} == {"planner", "templater"}


def timed_baseline(us: float, **device: Any) -> BaselineResult:
    """`scale_job` in so many microseconds, on a device that copies 1 kB a microsecond."""
    summary = TimeSummary(median_us=us, low_us=us, high_us=us, samples=5, launches_per_sample=1)
    return BaselineResult(
        device=DEVICE.model_copy(update=device),
        timings=tuple(WorkloadTiming(workload=k, cold=summary) for k in ("n=4096", "n=1001")),
        ceilings=Ceilings(cold_bytes_per_s=1e9, hot_bytes_per_s=1e9, flops_per_s=1e12, launch_us=1.0),
    )


FLOOR = (8 * 4096 * 8 * 1001) ** 0.5 / 1000 / 100
"""Floor over a baseline of 100 µs, as a geometric mean over the two workloads."""


@pytest.mark.parametrize(
    ("best", "host", "rounds"),
    [
        (FLOOR, False, 1),
        (FLOOR * 1.04, False, 1),
        (FLOOR * 1.06, False, 3),
        (FLOOR / 2, False, 3),
        (FLOOR, True, 3),
    ],
    ids=["at the floor", "within the margin", "above it", "the floor does not hold", "on the host"],
)
def test_the_roofline_ends_the_search(best: float, host: bool, rounds: int) -> None:
    baseline = timed_baseline(100.0, shares_host=host)
    rows = Rows(Budget(rounds=3, trials=60), baseline=lambda r, p: baseline, objective=lambda c: best)
    end = rows.run()
    assert end.state is JobState.DONE
    assert len(end.candidates) == rounds
    assert end.trials_done == (60 if rounds == 3 else 7), "one slice is enough to see the floor"


def test_a_job_may_ask_for_all_of_its_budget_at_the_floor() -> None:
    budget = Budget(rounds=3, trials=60, stop_early=False)
    rows = Rows(budget, baseline=lambda r, p: timed_baseline(100.0), objective=lambda c: FLOOR)
    assert rows.run().trials_done == 60


def test_a_search_without_agents_asks_one_step_and_searches_all() -> None:
    end = Rows(Budget(rounds=4, trials=20), strategy=Strategy.SEARCH).run()
    assert roles(end) == ["templater"]
    assert [c.trials for c in end.candidates] == [20]


def test_agents_that_only_rewrite_get_a_trial_a_round() -> None:
    def one(rows: Rows, payload: SlicePayload) -> SliceResult:
        return SliceResult(trials=1, ended_by=SliceEnd.EXHAUSTED)

    end = Rows(Budget(rounds=4, trials=20), strategy=Strategy.DIRECT, slice=one).run()
    assert [c.trials for c in end.candidates] == [1, 1, 1, 1]
    assert "tuner" not in roles(end)


def test_an_exhausted_space_ends_the_candidate_early() -> None:
    rows = Rows(Budget(trials=500), slice=lambda r, p: SliceResult(trials=3, ended_by=SliceEnd.EXHAUSTED))
    assert rows.run().trials_done == 3


def test_rejected_templates_are_mended_a_bounded_number_of_times() -> None:
    rows = Rows(
        Budget(trials=50),
        slice=lambda r, p: WRONG,
    )
    end = rows.run()
    assert end.state is JobState.FAILED
    assert len(end.candidates) == MAX_REPAIRS + 1
    mended = [s for s in steps(end) if s.role in ("templater", "repairer")]
    assert [s.attempt for s in mended] == [0, 1, 2]
    assert [s.failure for s in mended] == ["", "wrong", "wrong"]


def test_a_mended_template_is_searched() -> None:
    def slice_(rows: Rows, payload: SlicePayload) -> SliceResult:
        bad = payload.candidate == "c0"
        return WRONG if bad else SliceResult(trials=payload.trials)

    rows = Rows(Budget(trials=30), slice=slice_)
    end = rows.run()
    assert end.state is JobState.DONE
    assert [c.state for c in end.candidates] == [CandidateState.REJECTED, CandidateState.SEARCHED]


def test_a_refused_baseline_fails_the_job_with_its_reason() -> None:
    refused = BaselineResult(device=DEVICE, refused="the kernel does not compile: x")
    rows = Rows(Budget(), baseline=lambda r, p: refused)
    assert rows.run().state is JobState.FAILED
    assert rows.kinds == ["baseline"]


def test_seconds_end_the_search_but_not_the_verification() -> None:
    def slow(rows: Rows, payload: SlicePayload) -> SliceResult:
        rows.snapshot = replace(rows.snapshot, elapsed_s=rows.snapshot.elapsed_s + 30)
        return SliceResult(trials=2)

    rows = Rows(Budget(seconds=60, trials=1000), slice=slow)
    end = rows.run()
    assert end.state is JobState.DONE
    assert rows.kinds.count("slice") == 2
    assert rows.kinds[-1] == "verify"
    last = rows.snapshot.tasks[-1].payload
    assert isinstance(last, VerifyPayload)
    assert last.seconds == pytest.approx(0.001), "nothing is left"


def test_a_search_leaves_what_its_verification_is_expected_to_take() -> None:
    def measured(rows: Rows, payload: BaselinePayload) -> BaselineResult:
        return BaselineResult(device=DEVICE, seconds=10.0)

    rows = Rows(
        Budget(seconds=60, trials=1000), baseline=measured, slice=lambda r, p: SliceResult(trials=500)
    )
    rows.run()
    slices = [t.payload for t in rows.snapshot.tasks if isinstance(t.payload, SlicePayload)]
    kept = 10.0 * CHECKS_SHARE + DEVICE_EACH_S * len(rows.snapshot.job.workloads)
    assert slices[0].seconds == pytest.approx(60 - kept)
    last = rows.snapshot.tasks[-1].payload
    assert isinstance(last, VerifyPayload)
    assert last.seconds == pytest.approx(60)


def test_a_search_without_a_gain_has_time_that_was_kept_for_its_verification() -> None:
    def measured(rows: Rows, payload: BaselinePayload) -> BaselineResult:
        return BaselineResult(device=DEVICE, seconds=10.0)

    rows = Rows(
        Budget(seconds=60, trials=1000),
        baseline=measured,
        slice=lambda r, p: SliceResult(trials=500),
        objective=lambda candidate: 1.0,
    )
    rows.run()
    first, second = [t.payload.seconds for t in rows.snapshot.tasks if isinstance(t.payload, SlicePayload)]
    kept = 10.0 * CHECKS_SHARE + DEVICE_EACH_S * len(rows.snapshot.job.workloads)
    assert first == pytest.approx(60 - kept)
    assert second == pytest.approx(60 - kept / len(rows.snapshot.job.workloads))


def _all_spent(rows: Rows, payload: BaselinePayload) -> BaselineResult:
    rows.snapshot = replace(rows.snapshot, elapsed_s=100.0)
    return BaselineResult(device=DEVICE)


def test_after_a_baseline_that_spent_the_budget_one_batch_of_trials_is_run() -> None:
    rows = Rows(
        Budget(seconds=60, trials=1000), baseline=_all_spent, slice=lambda r, p: SliceResult(trials=3)
    )
    assert rows.run().state is JobState.DONE
    slices = [t.payload for t in rows.snapshot.tasks if isinstance(t.payload, SlicePayload)]
    assert [s.seconds for s in slices] == [first_batch_s(rows.snapshot.job)]
    assert rows.kinds[-1] == "verify"


def test_a_budget_in_which_not_even_one_trial_was_possible_is_named_as_what_failed() -> None:
    rows = Rows(Budget(seconds=60, trials=100), baseline=_all_spent, slice=lambda r, p: SliceResult(trials=0))
    said: list[str] = []
    while not rows.snapshot.state.is_terminal:
        for action in decide(rows.snapshot):
            said += [action.detail] if isinstance(action, SetJobState) else []
            rows.apply(action)
    assert rows.snapshot.state is JobState.FAILED
    assert rows.kinds.count("slice") == 1
    assert "no configuration was tried" in said[-1]
    assert "raise budget.seconds" in said[-1]


def test_a_job_waits_for_a_worker_of_its_back_end() -> None:
    rows = Rows(Budget())
    alone = replace(rows.snapshot, available_classes=())
    (action,) = decide(alone)
    assert isinstance(action, SetJobState)
    assert action.state is JobState.QUEUED
    assert "opencl" in action.detail


@pytest.mark.parametrize("state", [TaskState.QUEUED, TaskState.RUNNING])
def test_nothing_is_decided_while_a_task_is_open(state: TaskState) -> None:
    rows = Rows(Budget())
    task = TaskView("t0", TaskKind.BASELINE, state, None, None)
    assert decide(replace(rows.snapshot, device_class="x", tasks=(task,))) == ()


def test_a_task_given_up_fails_the_job() -> None:
    rows = Rows(Budget())
    task = TaskView("t0", TaskKind.BASELINE, TaskState.DEAD, None, None, error="3 attempts")
    (action,) = decide(replace(rows.snapshot, device_class="x", tasks=(task,)))
    assert isinstance(action, SetJobState)
    assert action.state is JobState.FAILED
    assert "3 attempts" in action.detail


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_an_ended_job_stays_as_it_is(state: JobState) -> None:
    assert decide(replace(Rows(Budget()).snapshot, state=state)) == ()
