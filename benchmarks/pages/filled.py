"""A database as teams have it: thousands of jobs, and one with thousands of trials."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from db.engine import Database
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.trials import FinishedTrial, TrialRepository
from db.tables import JobRow, TrialRow
from testbed.servers import fresh_database, postgres_server, redis_server
from testbed.service import Service
from warpsmith.domain.outcome import Measured, Outcome, Rejected, Stage, TimeSummary, WorkloadTiming
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.domain.state import JobState, TrialState
from warpsmith.domain.template import Template
from warpsmith.testing.jobs import scale_job

BATCH = 500


@contextmanager
def service_without_worker() -> Iterator[tuple[Service, Database]]:
    """An API on a Postgres of its own. A worker would end the jobs, which have no tasks."""
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server() as server,
        redis_server() as broker,
        fresh_database(server) as url,
    ):
        settings = {
            "WARPSMITH_DATABASE_URL": url,
            "WARPSMITH_BROKER_URL": broker,
            "WARPSMITH_KEY_REQUESTS_PER_S": "1000",
        }
        service = Service(Path(folder), settings).start()
        service.processes[1].terminate()
        database = Database(url)
        try:
            yield service, database
        finally:
            database.dispose()
            service.stop()


def add_jobs(session: Session, count: int) -> None:
    """Jobs that wait."""
    for number in range(count):
        labels = {"team": ("serving", "training")[number % 2]}
        JobRepository(session).create(scale_job(name=f"job-{number:05}", labels=labels))


def add_running_job(session: Session, trials: int) -> tuple[str, str]:
    """A job whose search goes on: its id, and that of its candidate."""
    job = scale_job(name="long-search", budget={"trials": max(trials * 2, 20_000), "seconds": 86400})
    jobs = JobRepository(session)
    job_id = jobs.create(job)[0].id
    for source, target in (
        (JobState.QUEUED, JobState.BASELINE),
        (JobState.BASELINE, JobState.PLANNING),
        (JobState.PLANNING, JobState.SEARCHING),
    ):
        jobs.move(job_id, source, target)
    jobs.set_baseline(job_id, {w.key: 100.0 for w in job.workloads})
    began = datetime.now(UTC) - timedelta(seconds=trials / 10)
    session.execute(update(JobRow).where(JobRow.id == job_id).values(started_at=began, created_at=began))
    template = Template(kernel=job.kernel, space=job.space)
    candidate = CandidateRepository(session).add(job_id, 0, 1, None, template, (), "step")
    add_trials(session, job_id, candidate.id, trials, began)
    return job_id, candidate.id


def add_trials(session: Session, job_id: str, candidate_id: str, count: int, began: datetime) -> None:
    """Finished trials, ten a second, as a search finds them: better ones become rare."""
    lot = random.Random(1)
    rows = []
    for number in range(count):
        outcome = made_outcome(lot, number)
        rows.append(
            {
                "job_id": job_id,
                "candidate_id": candidate_id,
                "number": number,
                "configuration": _configuration(number),
                "key": configuration_key(_configuration(number)),
                "state": TrialState.FINISHED,
                "outcome": outcome,
                "outcome_kind": outcome.kind,
                "objective": outcome.objective if isinstance(outcome, Measured) else None,
                "stage": outcome.stage.value if isinstance(outcome, Rejected) else None,
                "reason_group": outcome.reason if isinstance(outcome, Rejected) else None,
                "seconds": 0.1,
                "created_at": began,
                "finished_at": began + timedelta(seconds=number / 10),
            }
        )
    for at in range(0, count, BATCH):
        session.execute(insert(TrialRow), rows[at : at + BATCH])
    rejected = sum(row["objective"] is None for row in rows)
    session.execute(
        update(JobRow)
        .where(JobRow.id == job_id)
        .values(trials_done=count, trials_rejected=rejected, trials_proposed=count)
    )


def more_trials(session: Session, job_id: str, candidate_id: str, first: int, count: int) -> None:
    """Trials that end now, stored as a worker stores them."""
    lot = random.Random(first)
    found = [
        FinishedTrial(_configuration(number), made_outcome(lot, number), 0.1)
        for number in range(first, first + count)
    ]
    trials = TrialRepository(session)
    trials.propose(job_id, candidate_id, [t.configuration for t in found])
    trials.finish(job_id, candidate_id, None, found)


def made_outcome(lot: random.Random, number: int) -> Outcome:
    """What a trial of that number may have come to."""
    if lot.random() < 0.2:
        reasons = ("out of resources", "wrong output", "spills registers")
        return Rejected(stage=lot.choice(list(Stage)[:3]), reason=lot.choice(reasons))
    objective = 0.35 + lot.expovariate(2.5) + 0.4 / (1 + number / 300)
    return Measured(timings=tuple(_timings(100 * objective)), objective=objective)


def _timings(time_us: float) -> Iterator[WorkloadTiming]:
    for workload in scale_job().workloads:
        cold = TimeSummary(
            median_us=time_us, low_us=time_us, high_us=time_us, samples=20, launches_per_sample=1
        )
        yield WorkloadTiming(workload=workload.key, cold=cold, max_error=0.0)


def _configuration(number: int) -> Configuration:
    return {"BLOCK": number, "VEC": number % 8}
