"""The restore drill of docs/operations.md, on a real Postgres, with its own programs."""

import os
import subprocess
import sys
from pathlib import Path

from sqlalchemy.engine import make_url

from db import migrate
from db.engine import Database
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.views.job_status import job_status
from testbed.servers import _postgres_binaries, fresh_database, give_up
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.testing.jobs import scale_job

ROOT = Path(__file__).resolve().parents[2]


def plain(url: str) -> str:
    """The URL as Postgres' own programs take it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def program(name: str) -> str:
    folder = _postgres_binaries()
    if folder is None or not (folder / name).exists():
        give_up(f"no {name} on this machine")
    return str(folder / name)


def test_a_dump_that_is_restored_has_every_job_and_what_ran_is_done_again(
    postgres_url: str, postgres_session: str, tmp_path: Path
) -> None:
    dump, restore = program("pg_dump"), program("pg_restore")
    migrate.upgrade(postgres_url)
    database = Database(postgres_url)
    with database.write() as session:
        job_id = JobRepository(session).create(scale_job(), "key")[0].id
        JobRepository(session).move(job_id, JobState.QUEUED, JobState.BASELINE)
        task = TaskRepository(session).enqueue(job_id, TaskKind.BASELINE, "gpu.test", None)
        assert TaskRepository(session).claim(task.id, "worker", lease_s=-1) is not None
        task_id = task.id
    file = tmp_path / "warpsmith.dump"
    subprocess.run([dump, "--format=custom", f"--file={file}", plain(postgres_url)], check=True)
    with database.write() as session:
        JobRepository(session).cancel(job_id)
    database.dispose()
    with fresh_database(postgres_session) as url:
        into = ["--no-owner", "--exit-on-error", f"--dbname={plain(url)}"]
        subprocess.run([restore, *into, str(file)], check=True)
        environment = os.environ | {"WARPSMITH_DATABASE_URL": url}
        checked = [sys.executable, "-m", "warpsmith", "migrate", "--check"]
        subprocess.run(checked, cwd=ROOT, env=environment, check=True)
        restored = Database(url)
        with restored.write() as session:
            assert job_status(session, job_id).finished_at is None, "it was cancelled after the dump"
            again, new = JobRepository(session).create(scale_job(), "key")
            assert (again.id, new) == (job_id, False)
            assert [t.id for t in TaskRepository(session).expire(3)] == [task_id]
            assert TaskRepository(session).claim(task_id, "another", lease_s=10) is not None
        restored.dispose()
