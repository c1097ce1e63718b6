"""`warpsmith prune`: what it deletes, what it leaves, and counters that do not fall."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.admin import retention
from db.engine import Database, normal_url, utc_now
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.tables import Base, CandidateRow, DeletedCountRow, JobRow, RegistryRow
from db.views.metrics import samples
from testbed.rows import add_candidate, add_task, measured, rejected
from warpsmith.cli.app import main
from warpsmith.domain.state import JobState, TaskState
from warpsmith.domain.templates.outcome import Outcome
from warpsmith.domain.templates.space import Configuration
from warpsmith.search.searchers.stored_study import StudyTrial, export
from warpsmith.settings import settings
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.tasks import StepPayload, StepResult

DAYS = 86400.0


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str) -> Iterator[None]:
    """Settings that name the database of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", database_url)
    settings.cache_clear()
    yield
    settings.cache_clear()


def add_job(session: Session, days: float, state: JobState = JobState.DONE, tenant: str = "default") -> str:
    """A job with a row in every table that belongs to jobs; if it has ended, so many days ago."""
    row = JobRepository(session).create(scale_job(), tenant=tenant)[0]
    row.device_class = "opencl-x"
    candidate, task = add_candidate(session, row.id), add_task(session, row.id)
    task.state, task.error, task.history = TaskState.DEAD, "no", [{"cause": "lease expired"}]
    configurations: list[Configuration] = [{"BLOCK": b, "PER": 1} for b in (32, 64)]
    trials = TrialRepository(session)
    trials.propose(row.id, candidate.id, configurations)
    outcomes: list[Outcome] = [measured({"n=4096": 2.0}, 0.5), rejected("no")]
    done = [TrialResult(c, o, 1.5) for c, o in zip(configurations, outcomes, strict=True)]
    trials.finish(row.id, candidate.id, task.id, done)
    answer = StepResult(provider="openai", tokens=70, usd=0.25, latency_s=2.0)
    AgentStepRepository(session).add(row.id, task.id, StepPayload(role="planner", round=1), answer)
    row.state = state
    row.finished_at = utc_now() - timedelta(days=days) if state.is_terminal else None
    return row.id


def add_study(database: Database, job_id: str) -> str:
    """The stored study of a job's candidate; its name."""
    with database.read() as session:
        candidate = session.scalars(select(CandidateRow).where(CandidateRow.job_id == job_id)).one()
        space, name = candidate.template.space, f"{candidate.id}/opencl-x"
    url = normal_url(settings().sqlalchemy_url).render_as_string(hide_password=False)
    export(url, name, space, [StudyTrial(0, space.defaults, 1.5), StudyTrial(1, space.defaults, None, "no")])
    return name


def studies(database: Database) -> list[str]:
    """Names of the stored studies."""
    url = database.engine.url.render_as_string(hide_password=False)
    return sorted(optuna.get_all_study_names(url))


def counters(database: Database) -> dict[tuple[str, str], float]:
    """Values of the counters by name and labels."""
    with database.read() as session:
        return {
            (s.name, ",".join(sorted(s.labels.values()))): s.value
            for s in samples(session)
            if s.kind == "counter"
        }


def rows(database: Database) -> dict[str, int]:
    """Numbers of rows by table."""
    with database.read() as session:
        count = {
            t.name: session.scalar(select(func.count()).select_from(t)) for t in Base.metadata.sorted_tables
        }
    return {name: number or 0 for name, number in count.items()}


def jobs(database: Database) -> set[str]:
    """Ids of the jobs that are left."""
    with database.read() as session:
        return set(session.scalars(select(JobRow.id)))


def prune(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    with pytest.raises(SystemExit) as ended:
        main(["prune", *arguments])
    said = capsys.readouterr()
    return int(str(ended.value.code)), said.out + said.err


def test_old_jobs_go_with_everything_that_is_theirs(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    with database.write() as session:
        old = [add_job(session, 91, state) for state in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)]
    gone = [add_study(database, job_id) for job_id in old]
    before = counters(database)
    assert before[("warpsmith_trials_total", "measured")] == 3
    assert prune(capsys, "--older-than", "90d", "--dry-run") == (0, "would delete jobs: 3, trials: 6\n")
    assert jobs(database) == set(old) and studies(database) == sorted(gone)
    said = "deleted jobs: 3, trials: 6, studies: 3\n"
    assert prune(capsys, "--older-than", "90d") == (0, said)
    left = rows(database)
    of_jobs = {
        t.name
        for t in Base.metadata.sorted_tables
        if any(f.column.table.name == "job" for f in t.foreign_keys)
    }
    assert len(of_jobs) > 5 and {name: left[name] for name in of_jobs} == dict.fromkeys(of_jobs, 0)
    assert studies(database) == []
    assert counters(database) == before
    with database.read() as session:
        assert not any(
            session.execute(select(func.count()).select_from(t)).scalar_one() for t in optuna_rows()
        )
    # Counters go on from where they were.
    with database.write() as session:
        add_job(session, 0)
    assert counters(database)[("warpsmith_trials_total", "measured")] == 4
    assert prune(capsys, "--older-than", "90d") == (0, "deleted jobs: 0, trials: 0, studies: 0\n")


def optuna_rows() -> list[Any]:
    """Optuna's tables, without those that tell its version."""
    from optuna.storages._rdb import models

    tables = models.BaseModel.metadata.sorted_tables
    return [t for t in tables if "study_id" in t.c or "trial_id" in t.c]


def test_open_and_young_jobs_winners_and_other_tenants_stay(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with database.write() as session:
        running = add_job(session, 0, JobState.SEARCHING)
        session.get_one(JobRow, running).created_at = utc_now() - timedelta(days=400)
        young, old, winner = add_job(session, 8), add_job(session, 15), add_job(session, 400)
        other = add_job(session, 400, tenant="other")
        texts = dict.fromkeys(("kernel", "device_class", "workload", "chip", "name", "device", "driver"), "x")
        session.add(
            RegistryRow(
                tenant="default",
                job_id=winner,
                attempt=None,
                configuration={},
                speedup=1.0,
                verified_at=utc_now(),
                **texts,
            )
        )
    study = add_study(database, young)
    code, said = prune(capsys, "--older-than", "2w", "--tenant", "default")
    assert code == 0 and said.splitlines()[0] == "deleted jobs: 1, trials: 2, studies: 0"
    assert said.splitlines()[1].startswith("kept, as the registry has winners of them: 1; ")
    assert jobs(database) == {running, young, winner, other}
    assert prune(capsys, "--older-than", "2w", "--winners")[1] == "deleted jobs: 2, trials: 4, studies: 0\n"
    assert jobs(database) == {running, young} and old not in jobs(database)
    assert studies(database) == [study] and rows(database)["registry"] == 1


@pytest.mark.parametrize("age", ["90", "0d", "1h", "-3d", "d", "1d 2h"])
def test_an_age_that_is_none_or_below_a_day_is_refused(age: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = prune(capsys, f"--older-than={age}")
    assert code == 2 and "give days or weeks" in said


def test_two_that_prune_at_once_count_each_job_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 1)
    with database.write() as session:
        for _ in range(4):
            add_job(session, 91)
    before = counters(database)

    def prune_all() -> int:
        return retention.prune(90 * DAYS, "", winners=False, dry_run=False).jobs

    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(prune_all) for _ in range(2)]
        assert sum(one.result() for one in found) == 4
    assert counters(database) == before and not jobs(database)
    with database.read() as session:
        tokens = select(DeletedCountRow.value).where(DeletedCountRow.name.like("%tokens%"))
        assert session.scalars(tokens).all() == [280.0]
