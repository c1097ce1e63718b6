"""Rows that older versions wrote, after an upgrade of their database."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, insert, null, select

from db import migrate
from db.engine import Database, make_engine
from db.repositories.candidates import CandidateRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.result_views import worker_list
from db.snapshot import job_baseline
from db.tables import TrialRow, WorkerRow
from testbed.rows import cut_short, measured, rejected
from warpsmith.domain.declined_rule import DeclineCode
from warpsmith.domain.state import TaskKind
from warpsmith.domain.template import Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import (
    BaselinePayload,
    BaselineResult,
    CasesPayload,
    CasesResult,
    CheckedCase,
    Counters,
    ProfilePayload,
    ProfileResult,
    ProposedCase,
    SlicePayload,
    SliceResult,
    StepPayload,
    StepResult,
)

NOW = datetime.now(UTC)
OLD = "0008"
JOB, CANDIDATE = "a-job", "a-candidate"


class OldDatabase:
    """A database at an old revision, whose rows are written as columns were then."""

    def __init__(self, url: str) -> None:
        self.url = url
        migrate.upgrade(url, OLD)
        self._engine = make_engine(url)
        self._tables = MetaData()
        self._tables.reflect(self._engine)

    def add(self, table: str, **values: Any) -> None:
        """One row."""
        connection: Connection
        with self._engine.begin() as connection:
            # Reflected JSON columns would store None as JSON's null.
            given = {name: null() if value is None else value for name, value in values.items()}
            connection.execute(insert(self._tables.tables[table]).values(given))

    def row(self, table: str) -> dict[str, Any]:
        """The only row of a table, by the columns of the old revision."""
        with self._engine.begin() as connection:
            return dict(connection.execute(select(self._tables.tables[table])).one()._mapping)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table with a number, in order, by the columns of the old revision."""
        found = self._tables.tables[table]
        with self._engine.begin() as connection:
            return [dict(r._mapping) for r in connection.execute(select(found).order_by(found.c.number))]

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()


@pytest.fixture
def old(empty_url: str) -> Iterator[OldDatabase]:
    made = OldDatabase(empty_url)
    yield made
    made.close()


@pytest.fixture
def upgraded(old: OldDatabase) -> Iterator[Database]:
    """Opened by today's program; upgrade first."""
    opened = Database(old.url)
    yield opened
    opened.dispose()


def add_job(old: OldDatabase) -> None:
    job = scale_job()
    old.add(
        "job",
        id=JOB,
        name=job.name,
        spec=job.model_dump(mode="json"),
        spec_hash="0" * 64,
        state="searching",
        detail="",
        backend="cuda",
        device_class=DEVICE.device_class,
        round=1,
        budget_rounds=1,
        budget_trials=10,
        budget_s=60.0,
        trials_proposed=3,
        trials_done=3,
        trials_rejected=1,
        tokens_used=0,
        usd_used=0.0,
        created_at=NOW,
    )
    template = Template(kernel=job.kernel, space=job.space)
    old.add(
        "candidate",
        id=CANDIDATE,
        job_id=JOB,
        number=0,
        round=1,
        state="searching",
        template=template.model_dump(mode="json"),
        declined=[
            "restrict: not permitted by the job",
            "unroll: launch 1 (merge<2, (N)>): no loop: none",
            "unroll: our rewrite did not compile: k.cu:3: error",
        ],
        made_by="t2",
        trials=3,
        measured=1,
        created_at=NOW,
    )


def add_worker(old: OldDatabase, name: str, unavailable: dict[str, str]) -> None:
    old.add(
        "worker",
        id=name,
        hostname="here",
        pid=1,
        version="0",
        queues=["gpu.x"],
        devices=[],
        unavailable=unavailable,
        last_seen=NOW,
        started_at=NOW,
    )


def test_faults_and_draining_leave_the_strings_and_come_back(old: OldDatabase, upgraded: Database) -> None:
    said = {
        "hip": "no driver",
        DEVICE.uid: "put aside: our own kernel gives a wrong result",
        "drain": "it was told to end what it has begun, and to go",
    }
    add_worker(old, "w", said)
    migrate.upgrade(old.url)
    with upgraded.read() as session:
        row = session.get(WorkerRow, "w")
        assert row is not None and row.unavailable == {"hip": "no driver"}
        assert row.device_faults == {DEVICE.uid: "our own kernel gives a wrong result"}
        assert row.draining and WorkerRepository(session).is_stopping("w")
        assert WorkerRepository(session).has_put_aside("w", DEVICE)
        (view,) = worker_list(session).items
        assert view.unavailable == said, "the API says what it said"
    migrate.downgrade(old.url, OLD)
    assert old.row("worker")["unavailable"] == said


def test_a_healthy_worker_stays_one(old: OldDatabase, upgraded: Database) -> None:
    add_worker(old, "w", {})
    migrate.upgrade(old.url)
    with upgraded.read() as session:
        row = session.get(WorkerRow, "w")
        assert row is not None and not row.draining and row.device_faults == {}
        assert not WorkerRepository(session).is_stopping("w")


def test_finished_trials_get_the_kind_of_their_outcome(old: OldDatabase, upgraded: Database) -> None:
    add_job(old)
    outcomes = (measured({"n=1": 2.0}, 0.5), rejected("3 wrong"), cut_short({"n=1": 2.0}, 3.0, "n=2"), None)
    for number, outcome in enumerate(outcomes):
        old.add(
            "trial",
            job_id=JOB,
            candidate_id=CANDIDATE,
            number=number,
            configuration={"BLOCK": number},
            key=str(number),
            state="proposed" if outcome is None else "finished",
            outcome=None if outcome is None else outcome.model_dump(mode="json"),
            objective=getattr(outcome, "objective", None),
            stage=getattr(outcome, "stage", None),
            created_at=NOW,
        )
    migrate.upgrade(old.url)
    with upgraded.read() as session:
        rows = session.scalars(select(TrialRow).order_by(TrialRow.number)).all()
        assert [r.outcome_kind for r in rows] == ["measured", "rejected", "cut_short", None]
        assert TrialRepository(session).cut_short(JOB) == 1


def test_refusals_that_were_words_keep_them(old: OldDatabase, upgraded: Database) -> None:
    add_job(old)
    words = old.row("candidate")["declined"]
    migrate.upgrade(old.url)
    with upgraded.write() as session:
        read = CandidateRepository(session).get(CANDIDATE).declined
    assert list(map(str, read)) == words
    assert [(d.rule, d.code, d.launch) for d in read] == [
        ("restrict", DeclineCode.NOT_PERMITTED, ""),
        ("unroll", DeclineCode.UNRECORDED, "launch 1 (merge<2, (N)>)"),
        ("unroll", DeclineCode.UNRECORDED, ""),
    ]


@pytest.mark.parametrize(
    ("said", "settled"),
    [([], (None, False)), ([5, 10, 7], (10, False)), ([None], (None, True)), ([10, None], (10, True))],
)
def test_what_events_said_of_a_shared_search_stands_with_its_candidate(
    old: OldDatabase, upgraded: Database, said: list[int | None], settled: tuple[int | None, bool]
) -> None:
    add_job(old)
    old.add("event", job_id=JOB, at=NOW, kind="candidate", data={"id": CANDIDATE, "number": 0})
    for trials in said:
        old.add("event", job_id=JOB, at=NOW, kind="settled", data={"candidate": CANDIDATE, "trials": trials})
    migrate.upgrade(old.url)
    with upgraded.write() as session:
        repository = CandidateRepository(session)
        assert repository.settled(CANDIDATE) == settled
        repository.settle(CANDIDATE, 8)
        assert repository.settled(CANDIDATE) == (max(8, settled[0] or 0), settled[1])
        repository.settle(CANDIDATE, None)
        assert repository.settled(CANDIDATE)[1]
    migrate.downgrade(old.url, OLD)
    assert old.row("candidate")["id"] == CANDIDATE


def _old(value: Any) -> dict[str, Any]:
    """A value object as it was stored before documents named their kind."""
    document: dict[str, Any] = value.model_dump(mode="json")
    del document["kind"]
    return document


CASES = tuple(CheckedCase(dimensions={"n": n}) for n in (64, 128, 777))
COUNTERS = Counters(kernel="k", values={"dram_percent": 41.0})
ASKED = ProposedCase(dimensions={"n": 777}, reason="odd")
OWN = BaselineResult(device=DEVICE, cases=CASES[:2], counters=COUNTERS, seconds=3.0)


def add_tasks(old: OldDatabase) -> list[dict[str, Any]]:
    """The tasks of a job as they were: payload and result of each. The last one is running."""
    first = _old(OWN) | {"counted": []}
    checked = first | {"cases": [c.model_dump(mode="json") for c in CASES]}
    profiled = checked | {"counted": [COUNTERS.model_dump(mode="json")]}
    piece = SlicePayload(candidate=CANDIDATE, trials=5, seconds=3.0)
    written: list[tuple[str, Any, Any]] = [
        ("baseline", None, first),
        ("agent_step", _old(StepPayload(role="tester", round=1)), _old(StepResult(provider="rules"))),
        ("baseline", {"cases": [ASKED.model_dump(mode="json")], "profiled": None}, checked),
        ("slice", _old(piece), _old(SliceResult(trials=5))),
        ("baseline", {"cases": [], "profiled": CANDIDATE}, profiled),
        ("baseline", {"cases": [], "profiled": "another"}, profiled),
        ("baseline", {"cases": [], "profiled": "a third"}, None),
    ]
    for number, (kind, payload, result) in enumerate(written):
        old.add(
            "task",
            id=f"t{number}",
            job_id=JOB,
            number=number,
            kind=kind,
            queue="gpu.x",
            state="running" if result is None else "done",
            payload=payload,
            result=result,
            error="",
            attempt=0,
            history=[],
            rung_at=NOW,
            created_at=NOW,
        )
    return old.rows("task")


def test_each_work_gets_its_kind_and_a_result_of_its_own(old: OldDatabase, upgraded: Database) -> None:
    add_job(old)
    before = add_tasks(old)
    migrate.upgrade(old.url)
    with upgraded.read() as session:
        rows = TaskRepository(session).of_job(JOB)
        assert [r.kind for r in rows] == [
            TaskKind.BASELINE, TaskKind.AGENT_STEP, TaskKind.CHECK_CASES, TaskKind.SLICE,
            TaskKind.PROFILE, TaskKind.PROFILE, TaskKind.PROFILE,
        ]  # fmt: skip
        assert all(r.payload is not None and r.payload.kind is r.kind for r in rows)
        assert [rows[n].payload for n in (0, 2, 4)] == [
            BaselinePayload(),
            CasesPayload(cases=(ASKED,)),
            ProfilePayload(candidate=CANDIDATE),
        ]
        assert [r.result for r in rows] == [
            OWN,
            StepResult(provider="rules"),
            CasesResult(cases=CASES[2:]),
            SliceResult(trials=5),
            ProfileResult(counters=COUNTERS),
            ProfileResult(),
            None,
        ]
        known = job_baseline(session, JOB)
        assert known is not None
        assert (known.cases, known.counted, known.seconds) == (CASES, (COUNTERS,), 3.0)
        earlier = job_baseline(session, JOB, before=2)
        assert earlier is not None and (earlier.cases, earlier.counted) == (CASES[:2], ())
    migrate.downgrade(old.url, OLD)
    assert old.rows("task") == before
