"""Where the time of a job went: every moment once, and all of them."""

from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from sqlalchemy.orm import Session

from db.engine import Database, now
from db.repositories.tasks import TaskRepository
from db.tables import JobRow, TaskRow
from db.views.stage_seconds import StageSpan, seconds_of, stage_seconds
from testbed.deadlines import stretched
from testbed.rows import add_candidate, add_job
from warpsmith.chart_models import JobSeconds, JobStage
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.errors import NotFound
from warpsmith.tuning.tasks import Payload, SlicePayload, StepPayload, VerifyPayload

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
STAGES: list[JobStage] = ["queue", "baseline", "agents", "search", "verification", "device"]


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def span(stage: JobStage, begin_s: float, end_s: float, round_: int | None = None) -> StageSpan:
    return StageSpan(stage, round_, at(begin_s), at(end_s))


def told(found: JobSeconds) -> list[tuple[str, int | None, float]]:
    return [(s.stage, s.round, s.seconds) for s in found.stages]


def test_stages_come_in_the_order_in_which_they_began_and_gaps_are_decisions() -> None:
    spans = [span("queue", 0, 2), span("baseline", 2, 5), span("agents", 6, 10, 1), span("search", 10, 30, 1)]
    found = seconds_of(spans, at(0), at(31))
    assert told(found) == [
        ("queue", None, 2.0),
        ("baseline", None, 3.0),
        ("decisions", None, 2.0),
        ("agents", 1, 4.0),
        ("search", 1, 20.0),
    ]
    assert found.seconds == 31.0


def test_what_runs_at_one_time_counts_once() -> None:
    searches = [span("search", 0, 10, 1), span("search", 2, 8, 1)]
    spans = [*searches, span("agents", 5, 12, 2), span("device", 0, 20)]
    found = seconds_of(spans, at(0), at(20))
    assert told(found) == [("search", 1, 10.0), ("agents", 2, 2.0), ("device", None, 8.0)]


spans_of = st.builds(
    lambda stage, begin, length, round_: span(stage, begin, begin + length, round_),
    st.sampled_from(STAGES),
    st.integers(-20, 120),
    st.integers(0, 60),
    st.sampled_from([None, 1, 2]),
)


@given(spans=st.lists(spans_of, max_size=12), length=st.integers(0, 100))
def test_the_stages_are_all_of_the_time(spans: list[StageSpan], length: int) -> None:
    found = seconds_of(spans, at(0), at(length))
    assert found.seconds == pytest.approx(length)
    assert all(s.seconds > 0 for s in found.stages)
    assert len({(s.stage, s.round) for s in found.stages}) == len(found.stages)
    for second in range(length):
        open_ = {s.stage for s in spans if s.begin <= at(second) and s.end >= at(second + 1)}
        assert open_ <= {s.stage for s in found.stages} or len(open_) > 1


def test_ten_thousand_slices_are_counted_at_once() -> None:
    spans = [span("search", n % 500, n % 500 + 20, n % 3) for n in range(10_000)]
    began_s = perf_counter()
    seconds_of(spans, at(0), at(1000))
    assert perf_counter() - began_s < stretched(0.5)


def task(
    session: Session, job_id: str, kind: TaskKind, payload: Payload | None, *times_s: float | None
) -> TaskRow:
    """A task that was made, claimed and finished at these seconds of the job."""
    row = TaskRepository(session).enqueue(job_id, kind, "agents", payload)
    begin = session.get_one(JobRow, job_id).created_at
    made, began, done = (None if t is None else begin + timedelta(seconds=t) for t in times_s)
    state = TaskState.QUEUED if began is None else TaskState.RUNNING if done is None else TaskState.DONE
    values = {"created_at": made, "started_at": began, "finished_at": done, "state": state}
    session.execute(update(TaskRow).where(TaskRow.id == row.id).values(**values))
    return row


def run(session: Session, ended_s: float | None) -> str:
    """A job with a baseline, a question, two slices at a time, and a verification."""
    job = add_job(session)
    job.created_at = now(session) - timedelta(seconds=100)
    job.started_at = job.created_at + timedelta(seconds=4)
    job.finished_at = None if ended_s is None else job.created_at + timedelta(seconds=ended_s)
    job.state = JobState.SEARCHING if ended_s is None else JobState.DONE
    session.flush()
    candidate = add_candidate(session, job.id)
    sliced = SlicePayload(candidate=candidate.id, trials=5, seconds=20)
    task(session, job.id, TaskKind.BASELINE, None, 1, 4, 10)
    task(session, job.id, TaskKind.AGENT_STEP, StepPayload(role="templater", round=1), 10, 11, 15)
    task(session, job.id, TaskKind.SLICE, sliced, 15, 20, 40)
    if ended_s is None:
        task(session, job.id, TaskKind.SLICE, sliced, 15, 22, None)
    else:
        task(session, job.id, TaskKind.SLICE, sliced, 15, 22, 42)
        task(session, job.id, TaskKind.VERIFY, VerifyPayload(), 43, 43, 60)
    return job.id


def test_a_job_that_has_ended(database: Database) -> None:
    with database.write() as session:
        job_id = run(session, ended_s=60.0)
    with database.read() as session:
        found = stage_seconds(session, job_id)
    assert told(found) == [
        ("queue", None, 4.0),
        ("baseline", None, 6.0),
        ("agents", 1, 5.0),
        ("device", None, 5.0),
        ("search", 1, 22.0),
        ("decisions", None, 1.0),
        ("verification", None, 17.0),
    ]
    assert found.seconds == 60.0


def test_a_job_that_runs_is_told_up_to_now(database: Database) -> None:
    with database.write() as session:
        job_id = run(session, ended_s=None)
    with database.read() as session:
        found = stage_seconds(session, job_id)
    assert 100.0 <= found.seconds < 100.0 + stretched(60)
    last = found.stages[-1]
    assert (last.stage, last.round) == ("search", 1)
    assert last.seconds == pytest.approx(found.seconds - 20.0)


def test_a_slice_that_was_given_back_waits_for_a_device(database: Database) -> None:
    with database.write() as session:
        job_id = run(session, ended_s=None)
        again = (TaskRow.job_id == job_id, TaskRow.kind == TaskKind.SLICE, TaskRow.finished_at.is_(None))
        session.execute(update(TaskRow).where(*again).values(state=TaskState.QUEUED))
        found = stage_seconds(session, job_id)
    assert ("search", 1, 20.0) in told(found)
    (waits,) = [s for s in found.stages if s.stage == "device"]
    assert waits.seconds == pytest.approx(found.seconds - 35.0)


def test_a_job_without_a_task_waits_in_the_queue(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
    with database.read() as session:
        assert {s.stage for s in stage_seconds(session, job_id).stages} <= {"queue"}
        with pytest.raises(NotFound):
            stage_seconds(session, "nothing")
    with database.of("somebody").read() as session, pytest.raises(NotFound):
        stage_seconds(session, job_id)
