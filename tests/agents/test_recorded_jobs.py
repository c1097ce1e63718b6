"""Jobs that ran on a GPU with a model's replies are decided again as they were."""

import lzma
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from db.engine import Database
from db.tables import Base, JobRow, TrialRow
from testbed.replay import replay

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = sorted((ROOT / "benchmarks" / "results" / "agents").glob("*.db.xz"))


SHARE_OF_THE_JOB = {"01m89qg5c4c3pd1wvhws9mqtm8", "01m89qg5j2dprrh6xdrzckwktb"}
"""Jobs whose tools had a share of all of the job's seconds, as the rule was; the rest of each is alike."""


SHORT = {"h100-series-5.db": 5}
"""Histories of few jobs, each with a number that it exceeds."""


def opened(history: Path, folder: Path) -> Database:
    """The recorded rows, in tables with the columns that have come since."""
    path = folder / "history.db"
    path.write_bytes(lzma.decompress(history.read_bytes()))
    with closing(sqlite3.connect(path)) as recorded, recorded:
        for table in Base.metadata.sorted_tables:
            held = {row[1] for row in recorded.execute(f"PRAGMA table_info({table.name})")}
            for column in (c for c in table.columns if held and c.name not in held and c.nullable):
                recorded.execute(f"ALTER TABLE {table.name} ADD COLUMN {column.name}")
    return Database(f"sqlite:///{path}")


@pytest.mark.parametrize("history", HISTORIES, ids=lambda p: p.stem)
def test_recorded_jobs_are_decided_again_as_they_were(history: Path, tmp_path: Path) -> None:
    database = opened(history, tmp_path)
    with database.read() as session:
        jobs = session.scalars(select(JobRow.id)).all()
        found = {job: replay(session, job, {}, answers=False) for job in jobs}
    database.dispose()
    assert len(jobs) > SHORT.get(history.stem, 10)
    differ = {job: f.differences for job, f in found.items() if f.differences and job not in SHARE_OF_THE_JOB}
    assert differ == {}
    for difference in (d for job in SHARE_OF_THE_JOB & set(jobs) for d in found[job].differences):
        recorded, replayed = re.sub(r"tool_seconds=[\d.]+", "", difference).split(", replayed ")
        assert recorded.split("recorded ")[1] == replayed, "only the seconds differ"
    assert sum(f.candidates for f in found.values()) >= len(jobs)


def test_a_record_without_one_trial_is_not_decided_alike(tmp_path: Path) -> None:
    database = opened(HISTORIES[0], tmp_path)
    with database.write() as session:
        best = session.scalars(
            select(TrialRow).where(TrialRow.objective.is_not(None)).order_by(TrialRow.objective)
        ).first()
        assert best is not None
        job = best.job_id
        session.execute(delete(TrialRow).where(TrialRow.id == best.id))
    with database.read() as session:
        assert replay(session, job, {}, answers=False).differences
    database.dispose()


def test_records_hold_nobodys_kernel() -> None:
    for history in HISTORIES:
        text = lzma.decompress(history.read_bytes())
        assert b"__global__" not in text
