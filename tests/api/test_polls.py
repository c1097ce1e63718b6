"""Polls share statements; what each gets is its own."""

import asyncio
import contextlib
import json

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from api.live.shared_polls import Polls
from db.engine import Database
from db.repositories.jobs import JobRepository
from db.views.job_status import poll_statuses
from warpsmith.errors import NotFound
from warpsmith.testing.jobs import scale_job

TOGETHER = 40


@pytest.fixture
def jobs(database: Database) -> list[str]:
    """Three jobs of `mine` and one of `theirs`, in this order."""
    with database.write() as session:
        return [
            JobRepository(session).create(scale_job(), tenant=t)[0].id for t in ("mine",) * 3 + ("theirs",)
        ]


async def ask(polls: Polls, database: Database, ids: list[str]) -> list[str | type[BaseException]]:
    """What each poll says: the id of the job that it tells of, or the type of its error."""
    found = await asyncio.gather(*(polls.status(database, i) for i in ids), return_exceptions=True)
    return [type(f) if isinstance(f, BaseException) else str(json.loads(f.body)["id"]) for f in found]


def test_polls_at_a_time_share_statements(database: Database, jobs: list[str]) -> None:
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    wanted = jobs[:3] * TOGETHER
    assert asyncio.run(ask(Polls(), database.of("mine"), wanted)) == wanted
    assert len([s for s in statements if "FROM job" in s]) in (1, 2)


def test_a_tenant_gets_nothing_of_another(database: Database, jobs: list[str]) -> None:
    async def both() -> list[list[str | type[BaseException]]]:
        polls = Polls()
        sides = (database.of("mine"), database.of("theirs"))
        return list(await asyncio.gather(*(ask(polls, side, [jobs[0], jobs[3]]) for side in sides)))

    assert asyncio.run(both()) == [[jobs[0], NotFound], [NotFound, jobs[3]]]


def test_a_poll_sees_what_was_written_before_it(database: Database, jobs: list[str]) -> None:
    async def twice() -> list[str]:
        polls, states = Polls(), []
        for _ in range(2):
            answer = await polls.status(database.of("mine"), jobs[0])
            states.append(str(json.loads(answer.body)["state"]))
            with database.of("mine").write() as session:
                JobRepository(session).cancel(jobs[0])
        return states

    first, second = asyncio.run(twice())
    assert first != "cancelled"
    assert second == "cancelled"


def test_what_is_wrong_with_one_job_falls_on_no_other(
    database: Database, jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = poll_statuses

    def broken(database: Database, job_ids: list[str]) -> object:
        if jobs[1] in job_ids:
            raise ValueError("a row that cannot be read")
        return real(database, job_ids)

    monkeypatch.setattr("api.live.shared_polls.poll_statuses", broken)
    assert asyncio.run(ask(Polls(), database.of("mine"), jobs[:3])) == [jobs[0], ValueError, jobs[2]]


def test_all_hear_that_the_database_is_away_and_the_next_is_served(
    database: Database, jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def away(database: Database, job_ids: list[str]) -> object:
        asked.append(len(job_ids))
        raise OperationalError("SELECT", {}, Exception("gone"))

    async def through() -> tuple[list[str | type[BaseException]], list[str | type[BaseException]]]:
        polls = Polls()
        with monkeypatch.context() as patch:
            patch.setattr("api.live.shared_polls.poll_statuses", away)
            lost = await ask(polls, database.of("mine"), jobs[:3])
        return lost, await ask(polls, database.of("mine"), jobs[:1])

    lost, served = asyncio.run(through())
    assert lost == [OperationalError] * 3
    assert sum(asked) == 3, "nobody is asked for twice while the database is away"
    assert served == jobs[:1]


def test_a_client_that_goes_leaves_the_others_their_answers(database: Database, jobs: list[str]) -> None:
    async def one_goes() -> list[str | type[BaseException]]:
        polls, mine = Polls(), database.of("mine")
        goes = asyncio.create_task(polls.status(mine, jobs[0]))
        stays = asyncio.create_task(ask(polls, mine, jobs[:2]))
        await asyncio.sleep(0)
        goes.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await goes
        return await stays

    assert asyncio.run(one_goes()) == jobs[:2]
