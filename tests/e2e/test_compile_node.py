"""A worker with one compiler, a compile node beside it, and what its death costs: nothing."""

import os
import signal
from pathlib import Path

import pytest

from db.engine import Database
from db.tables import CompilationRow
from testbed.service import Service, ended, finished, trials_of
from tests.e2e.test_job import check_result, wide_job
from warpsmith.domain.state import CompilationState

pytestmark = pytest.mark.slow


def compiled_by(database: Database, worker: str) -> int:
    """How many binaries a compile node has brought."""
    with database.read() as session:
        done = session.query(CompilationRow).filter_by(state=CompilationState.DONE, worker=worker)
        return done.count()


def test_a_compile_node_helps_until_it_is_killed(tmp_path: Path, postgres_url: str, redis_url: str) -> None:
    settings = {
        "WARPSMITH_DATABASE_URL": postgres_url,
        "WARPSMITH_BROKER_URL": redis_url,
        "WARPSMITH_COMPILE_WORKERS": "1",
    }
    service = Service(tmp_path / "data", settings).start()
    database = Database(postgres_url)
    try:
        node = service.spawn("worker", "--queues", "compile")
        service.wait_for("/v1/workers", lambda w: any(i["compile_slots"] for i in w["items"]))
        (found,) = [w for w in service.get("/v1/workers")["items"] if w["compile_slots"]]
        assert {q.split(".")[0] for q in found["queues"]} == {"compile"}
        assert found["devices"] == [], "its devices are for compiling only"
        job = service.submit(wide_job(trials=14))
        service.wait(job, lambda s: s["trials_done"] >= 5)
        helped = compiled_by(database, found["id"])
        assert helped > 0, service.logs()
        os.killpg(node.pid, signal.SIGKILL)
        status = service.wait(job, ended)
        assert status["state"] == "done", status["detail"] + service.logs()
        assert len(finished(trials_of(service, job))) == 14
        check_result(service.get(f"/v1/jobs/{job}/result"), 14)
        assert compiled_by(database, found["id"]) < 14, "the worker's own compiler had its part"
    finally:
        service.stop()
        database.dispose()
