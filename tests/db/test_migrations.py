from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import inspect, select, text

from db import migrate
from db.engine import Database, make_engine
from db.tables import Base, TaskRow
from testbed.rows import add_job, add_task
from warpsmith.errors import Unavailable


def _tables(url: str) -> set[str]:
    engine = make_engine(url)
    try:
        return set(inspect(engine).get_table_names())
    finally:
        engine.dispose()


def test_forward_and_back(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    migrate.upgrade(empty_url)
    assert _tables(empty_url) == set(Base.metadata.tables) | {"warpsmith_version"}
    assert migrate.current(empty_url) == migrate.head()
    migrate.downgrade(empty_url)
    assert _tables(empty_url) == {"warpsmith_version"}
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []


def test_migrated_schema_is_that_of_the_tables(database_url: str) -> None:
    assert migrate.differences(database_url) == []


def test_tables_of_others_are_left_alone(empty_url: str) -> None:
    engine = make_engine(empty_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE studies (id INTEGER PRIMARY KEY)"))
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
    engine.dispose()
    migrate.upgrade(empty_url)
    assert migrate.differences(empty_url) == []
    migrate.downgrade(empty_url)
    assert {"studies", "alembic_version"} <= _tables(empty_url)


@pytest.mark.parametrize("revision", ["0016", "r9999"])
def test_a_revision_of_another_version_is_refused_with_what_to_do(database_url: str, revision: str) -> None:
    """Versions before the first release had other revisions, newer versions have more."""
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE warpsmith_version SET version_num = :made"), {"made": revision})
    engine.dispose()
    for refused in (migrate.upgrade, migrate.downgrade, migrate.require_current):
        with pytest.raises(Unavailable, match=f"revision {revision}.*start that version.*an empty database"):
            refused(database_url)
    assert migrate.current(database_url) == revision


def test_a_missing_column_is_seen(database_url: str) -> None:
    engine = make_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE job DROP COLUMN speedup"))
    engine.dispose()
    assert migrate.differences(database_url) != []


def test_several_processes_may_migrate_at_once(empty_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(migrate.upgrade, empty_url) for _ in range(4)]:
            done.result()
    assert migrate.differences(empty_url) == []


def test_an_old_schema_is_refused_with_the_command_to_run(empty_url: str) -> None:
    with pytest.raises(Unavailable, match="run `warpsmith migrate`"):
        migrate.require_current(empty_url)
    migrate.upgrade(empty_url)
    migrate.require_current(empty_url)


def test_a_table_made_anew_keeps_what_refers_to_it(database_url: str) -> None:
    """SQLite makes a table anew for a changed constraint; to drop it in between must not delete its tasks."""
    database = Database(database_url)
    with database.write() as session:
        add_task(session, add_job(session).id)
    with migrate._connection(database_url) as connection:
        operations = Operations(MigrationContext.configure(connection))
        # On Postgres it alters the table where it is.
        with operations.batch_alter_table("job") as job:
            job.alter_column("name", nullable=True)
    with database.read() as session:
        assert len(session.scalars(select(TaskRow)).all()) == 1
    database.dispose()
