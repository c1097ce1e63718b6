"""Trials as points of a chart: what they say, what is new, and how long 10,000 of them take."""

from datetime import timedelta
from time import perf_counter

import pytest
from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from db.engine import Database, now
from db.repositories.trials import TrialRepository, TrialResult
from db.tables import JobRow, TrialRow
from db.views.result_views import trial_page, trial_view
from db.views.trial_points import OVERLAP_S, trial_points
from testbed.deadlines import stretched
from testbed.rows import add_candidate, add_job, cut_short, measured, rejected
from warpsmith.domain.state import TrialState
from warpsmith.domain.templates.outcome import Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import NotFound
from warpsmith.testing.jobs import scale_job

SMALL, LARGE = (w.key for w in scale_job().workloads)
MANY = 10_000
BUDGET_S = 0.5
LONG_AGO_S = 1000.0


def begun(session: Session, ago_s: float = LONG_AGO_S) -> tuple[str, str]:
    """A job that got its device that long ago, and its candidate."""
    job = add_job(session)
    job.started_at = now(session) - timedelta(seconds=ago_s)
    session.flush()
    return job.id, add_candidate(session, job.id).id


def tried(session: Session, ids: tuple[str, str], *outcomes: Outcome | None) -> None:
    """Proposes a configuration for each outcome, and finishes those that have one."""
    configurations: list[Configuration] = [{"BLOCK": 32 << i, "PER": 1} for i in range(len(outcomes))]
    trials = TrialRepository(session)
    trials.propose(*ids, configurations)
    pairs = zip(configurations, outcomes, strict=True)
    trials.finish(*ids, None, [TrialResult(c, o, 0.5) for c, o in pairs if o is not None])


def test_a_point_says_what_its_trial_came_to(database: Database) -> None:
    fast, short = measured({LARGE: 50.0, SMALL: 20.0}, 0.5), cut_short({SMALL: 80.0}, 2.0, LARGE)
    wrong = [rejected(f"y: {n} of 4096 elements differ") for n in (12, 13)]
    with database.write() as session:
        ids = begun(session)
        tried(session, ids, fast, *wrong, short, None, rejected("no such type", Stage.COMPILE))
    with database.read() as session:
        found = trial_points(session, ids[0])
    assert found.number == (0, 1, 2, 3, 5), "a trial without an outcome is no point"
    assert found.gain == (2.0, None, None, None, None)
    assert found.outcome == ("measured", "rejected", "rejected", "cut_short", "rejected")
    assert found.rejection == (None, 0, 0, None, 1), "similar reasons are one"
    assert [(r.stage, r.reason) for r in found.rejections] == [
        ("correctness", "y: # of # elements differ"),
        ("compile", "no such type"),
    ]
    assert found.round == (1,) * 5 and found.candidate == (0,) * 5
    assert found.reused == (False,) * 5
    assert all(LONG_AGO_S <= at_s < LONG_AGO_S + stretched(60) for at_s in found.at_s)


def test_a_result_of_an_earlier_job_is_told_apart(database: Database) -> None:
    with database.write() as session:
        ids = begun(session)
        kept: Configuration = {"BLOCK": 64, "PER": 2}
        TrialRepository(session).adopt(*ids, [TrialResult(kept, measured({SMALL: 1.0}, 0.25), 0.5)])
        found = trial_points(session, ids[0])
    assert (found.reused, found.gain) == ((True,), (4.0,))


def test_only_what_is_new_comes_and_nothing_is_missed(database: Database) -> None:
    with database.write() as session:
        ids = begun(session)
        tried(session, ids, *[measured({SMALL: 1.0}, 0.5)] * 3)
        for number, at_s in enumerate((200.0, 400.0, 600.0)):
            at = now(session) - timedelta(seconds=LONG_AGO_S - at_s)
            trial = (TrialRow.job_id == ids[0], TrialRow.number == number)
            session.execute(update(TrialRow).where(*trial).values(finished_at=at))
    with database.read() as session:
        every = trial_points(session, ids[0])
        assert every.number == (0, 1, 2)
        assert every.next == pytest.approx(LONG_AGO_S - OVERLAP_S, abs=stretched(30))
        assert every.next < LONG_AGO_S + stretched(30) - OVERLAP_S, "a commit that is late is not missed"
        assert trial_points(session, ids[0], 300.0).number == (1, 2)
        assert trial_points(session, ids[0], 500.0).number == (2,)
        assert trial_points(session, ids[0], 1e9).number == ()


def test_a_job_that_waits_for_its_device_has_no_points(database: Database) -> None:
    with database.write() as session:
        job_id = add_job(session).id
    with database.read() as session:
        found = trial_points(session, job_id)
        with pytest.raises(NotFound):
            trial_points(session, "nothing")
    assert (found.number, found.next) == ((), 0.0)


def test_points_of_another_tenant_are_not_found(database: Database) -> None:
    with database.write() as session:
        ids = begun(session)
    with database.of("somebody").read() as session:
        for view in (trial_points, lambda s, job_id: trial_view(s, job_id, 0)):
            with pytest.raises(NotFound):
                view(session, ids[0])


def test_a_trial_by_its_number_is_that_of_the_page(database: Database) -> None:
    with database.write() as session:
        ids = begun(session)
        tried(session, ids, measured({SMALL: 1.0}, 0.5), rejected("wrong"), None)
    with database.read() as session:
        items = trial_page(session, ids[0]).items
        assert [trial_view(session, ids[0], t.number) for t in items] == list(items)
        assert items[0].at_s is not None and items[2].at_s is None
        with pytest.raises(NotFound, match="no trial 3"):
            trial_view(session, ids[0], 3)


def many(session: Session, ids: tuple[str, str]) -> None:
    """Trials as real ones are: timings of ten workloads, or a compiler's log of 2,000 characters."""
    fast: Measured = measured({f"n={n}": 123.456 for n in range(10)}, 0.5)
    wrong = Rejected(stage=Stage.COMPILE, reason="no such type", log="error: " * 300)
    at = now(session)
    shared = {"job_id": ids[0], "candidate_id": ids[1], "state": TrialState.FINISHED, "created_at": at}
    rows = [
        {
            **shared,
            "number": n,
            "configuration": {"BLOCK": 32 << n % 6, "PER": 1 << n % 4, "UNROLL": n % 11, "VEC": "float4"},
            "key": f"{n:016x}",
            "outcome": wrong if n % 5 == 0 else fast,
            "outcome_kind": "rejected" if n % 5 == 0 else "measured",
            "objective": None if n % 5 == 0 else 0.5 + n / MANY,
            "stage": "compile" if n % 5 == 0 else None,
            "reason_group": f"no such type {n % 7}" if n % 5 == 0 else None,
            "seconds": 0.01,
            "finished_at": at - timedelta(seconds=LONG_AGO_S * (1 - n / MANY)),
        }
        for n in range(MANY)
    ]
    session.execute(insert(TrialRow), rows)
    session.execute(update(JobRow).where(JobRow.id == ids[0]).values(trials_done=MANY))


@pytest.mark.alone
def test_ten_thousand_points_come_at_once(database: Database) -> None:
    with database.write() as session:
        ids = begun(session)
        many(session, ids)
    took_s = []
    for _ in range(5):
        with database.read() as session:
            began_s = perf_counter()
            text = trial_points(session, ids[0]).model_dump_json()
            took_s.append(perf_counter() - began_s)
    print(f"{1e3 * min(took_s):.0f} ms at best of {[round(1e3 * t) for t in took_s]}, {len(text):,} bytes")
    assert min(took_s) < stretched(BUDGET_S)
    with database.read() as session:
        assert len(trial_points(session, ids[0]).number) == MANY
