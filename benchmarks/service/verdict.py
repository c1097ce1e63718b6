"""What must hold after any fault, asked of the database."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import func, select

from db.engine import Database
from db.tables import EventRow, JobRow, TaskRow, TrialRow
from warpsmith.domain.state import JobState, TaskState, TrialState

OPEN_TASKS = (TaskState.QUEUED, TaskState.RUNNING)


def verdict(database: Database, accepted: Collection[str]) -> dict[str, Any]:
    """Counts; `failures` of the result names every promise that was broken."""
    with database.read() as session:
        jobs = session.scalars(select(JobRow).where(JobRow.id.in_(accepted))).all()
        extra = session.scalar(select(func.count()).select_from(JobRow).where(JobRow.id.not_in(accepted)))
        ends: dict[str, int] = {}
        for event in session.scalars(select(EventRow).where(EventRow.kind == "state")):
            if JobState(str(event.data["state"])).is_terminal:
                ends[event.job_id] = ends.get(event.job_id, 0) + 1
        open_tasks = session.scalar(
            select(func.count()).select_from(TaskRow).where(TaskRow.state.in_(OPEN_TASKS))
        )
        finished = dict(
            session.execute(
                select(TrialRow.job_id, func.count())
                .where(TrialRow.state == TrialState.FINISHED)
                .group_by(TrialRow.job_id)
            ).all()
        )
        twice = session.execute(
            select(TrialRow.candidate_id, TrialRow.key)
            .group_by(TrialRow.candidate_id, TrialRow.key)
            .having(func.count() > 1)
        ).all()
        stuck = session.scalar(
            select(func.count())
            .select_from(TrialRow)
            .join(JobRow, JobRow.id == TrialRow.job_id)
            .where(TrialRow.state == TrialState.PROPOSED, JobRow.state == JobState.DONE)
        )
        causes: dict[str, int] = {}
        for history in session.scalars(select(TaskRow.history)):
            for entry in history:
                causes[str(entry["cause"])] = causes.get(str(entry["cause"]), 0) + 1
    states: dict[str, int] = {}
    for job in jobs:
        states[job.state.value] = states.get(job.state.value, 0) + 1
    counts = {
        "jobs lost": len(accepted) - len(jobs),
        "jobs not asked for": extra or 0,
        "jobs that have not ended": sum(not j.state.is_terminal for j in jobs),
        "jobs that did not end exactly once": sum(ends.get(j.id, 0) != 1 for j in jobs),
        "jobs that failed": states.get("failed", 0),
        "duplicate trials": len(twice),
        "stuck trials": stuck or 0,
        "open tasks": open_tasks or 0,
        "budgets overspent": sum(j.trials_done > j.budget_trials for j in jobs),
        "budgets not used up": sum(j.trials_done < j.budget_trials for j in jobs if j.state is JobState.DONE),
        "counters that differ from rows": sum(j.trials_done != finished.get(j.id, 0) for j in jobs),
    }
    details = sorted({j.detail for j in jobs if j.state is not JobState.DONE})
    return {
        "jobs": len(accepted),
        "states": states,
        "trials": sum(finished.values()),
        "attempts lost or failed, by cause": causes,
        **counts,
        "failures": [f"{name}: {count}" for name, count in counts.items() if count],
        "details": details[:5],
    }
