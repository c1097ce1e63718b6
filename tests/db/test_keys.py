from datetime import datetime, timedelta

import pytest

from db.api_keys import KeyLimits, KeyScope, fits, id_of, new_key
from db.engine import Database, utc_now
from db.repositories.jobs import JobRepository
from db.repositories.keys import KeyRepository
from testbed.rows import add_candidate, add_task
from warpsmith.errors import NotFound
from warpsmith.testing.jobs import scale_job


def make(database: Database, expires_at: datetime | None = None) -> str:
    with database.write() as session:
        return KeyRepository(session).create("me", "t", (KeyScope.READ,), KeyLimits(), expires_at)[1]


def found(database: Database, key: str) -> bool:
    with database.read() as session:
        return KeyRepository(session).find(key) is not None


def test_keys_differ_and_carry_their_id() -> None:
    made = [new_key() for _ in range(50)]
    assert len({key for _, key in made}) == len({key_id for key_id, _ in made}) == 50
    assert all(id_of(key) == key_id and fits(key, "0" * 64) is False for key_id, key in made)
    assert [id_of(x) for x in ("", "ws_", made[0][1] + "x", made[0][1][:-1], f" {made[0][1]}")] == [None] * 5


def test_a_key_is_found_while_it_lasts(database: Database) -> None:
    later, past = utc_now() + timedelta(hours=1), utc_now() - timedelta(seconds=1)
    with database.read() as session:
        assert not KeyRepository(session).any_active()
    assert not found(database, make(database, past))
    with database.read() as session:
        assert not KeyRepository(session).any_active()
    key = make(database, later)
    assert found(database, key)
    assert not found(database, new_key()[1])
    with database.write() as session:
        assert KeyRepository(session).any_active()
        assert KeyRepository(session).revoke(str(id_of(key)))
    assert not found(database, key)
    with database.read() as session:
        assert [row.tenant for row in KeyRepository(session).all()] == ["t", "t"]


def test_keys_that_are_not_there(database: Database) -> None:
    with database.write() as session:
        keys = KeyRepository(session)
        for ask in (keys.get, keys.revoke, lambda name: keys.rotate(name, 0)):
            with pytest.raises(NotFound, match="no key nothing"):
                ask("nothing")
    ended = make(database, utc_now() - timedelta(seconds=1))
    with database.write() as session, pytest.raises(NotFound, match="has ended"):
        KeyRepository(session).rotate(str(id_of(ended)), 0)


def test_jobs_and_tasks_belong_to_the_tenant_that_submitted(database: Database) -> None:
    with database.write() as session:
        jobs = JobRepository(session)
        mine, _ = jobs.create(scale_job(), "key", tenant="mine", priority=3)
        theirs, fresh = jobs.create(scale_job(name="other"), "key", tenant="theirs")
        assert fresh and theirs.id != mine.id
        task = add_task(session, mine.id)
        add_candidate(session, mine.id)
        assert (task.tenant, task.priority) == ("mine", 3)
    with database.of("theirs").read() as session:
        assert [j.id for j in JobRepository(session).page()] == [theirs.id]
        with pytest.raises(NotFound):
            JobRepository(session).get(mine.id)
    with database.read() as session:
        assert len(JobRepository(session).page()) == 2
