"""Rows that older versions wrote, after an upgrade of their database."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, insert, select

from db import migrate
from db.engine import Database, make_engine
from db.repositories.candidates import CandidateRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import WorkerRepository
from db.result_views import worker_list
from db.tables import TrialRow, WorkerRow
from tests.db.rows import cut_short, measured, rejected
from tests.jobs import DEVICE, scale_job
from warpsmith.domain.template import Template

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
            connection.execute(insert(self._tables.tables[table]).values(values))

    def row(self, table: str) -> dict[str, Any]:
        """The only row of a table, by the columns of the old revision."""
        with self._engine.begin() as connection:
            return dict(connection.execute(select(self._tables.tables[table])).one()._mapping)

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
        declined=[],
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
