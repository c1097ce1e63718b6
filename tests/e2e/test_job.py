"""The main job on a real device (PoCL), through real processes: embedded, and full on Postgres and Redis."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import optuna
import pytest
import redis

from testbed.plain_http import NO_TLS
from testbed.service import Service, ended, finished, trials_of
from warpsmith.cli import main
from warpsmith.testing.jobs import scale_job

pytestmark = pytest.mark.slow


def wide_job(trials: int, n: int = 65536) -> dict[str, Any]:
    """A job whose space (256 configurations) outlasts its budget, and one configuration that is wrong.

    The random searcher has no opinion on when enough was searched.
    """
    source = """
    __kernel void scale(__global const float* x, __global float* y, const int n) {
      for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = (2.0f + (PAD == 7)) * x[i];
    }
    """
    job = scale_job().model_dump(mode="json", exclude_unset=True)
    job["kernel"]["source"] = source
    job["workloads"] = [{"dimensions": {"n": n}}]
    job["searcher"] = "random"
    job["parameters"].append({"name": "PAD", "values": list(range(16))})
    job["rewrite"] = {"enabled": False}
    job["budget"] = {"trials": trials, "seconds": 600}
    return job


def check_result(result: dict[str, Any], trials: int) -> None:
    """What every finished job must show."""
    assert result["trials_measured"] + result["trials_rejected"] == trials
    assert {c["verdict"] for c in result["comparisons"]} <= {"faster", "slower", "equal", "noisy"}
    for comparison in result["comparisons"]:
        assert (
            comparison["speedup"]["low"] <= comparison["speedup"]["estimate"] <= comparison["speedup"]["high"]
        )
        assert comparison["baseline_us"] > 0
        assert comparison["best_us"] > 0
    for entry in result["dispatch"]:
        if entry["configuration"] is not None:
            assert "scale" in entry["source"]
            assert f"#define BLOCK {entry['configuration']['BLOCK']}" in entry["source"]
            assert entry["block"][0] == entry["configuration"]["BLOCK"]
    assert result["speedup"] >= 1.0


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Service]:
    """One `warpsmith serve` on SQLite."""
    service = Service(tmp_path / "data").start()
    yield service
    service.stop()


def test_embedded_job_end_to_end(embedded: Service) -> None:
    wanted = wide_job(trials=12) | {"searcher": "default"}
    job = embedded.submit(wanted, key="once")
    assert embedded.submit(wanted, key="once") == job
    status = embedded.wait(job, ended)
    assert status["state"] == "done", status["detail"] + embedded.logs()
    assert status["trials_done"] == 12
    assert status["feasible"] == 256
    assert status["reason"]["search"] == "12 of 256 configurations tried; the budget of 12 trials is spent"
    result = embedded.get(f"/v1/jobs/{job}/result")
    assert result["reason"] == status["reason"]
    assert (status["reason"]["code"] == "gain") == any(e["configuration"] for e in result["dispatch"])
    check_result(result, 12)
    wrong = [t for t in trials_of(embedded, job) if t["configuration"]["PAD"] == 7]
    assert all(t["outcome"]["stage"] == "correctness" for t in wrong)
    workers = embedded.get("/v1/workers")["items"]
    assert any(w["alive"] and w["devices"] for w in workers)
    study_equals_rows(f"sqlite:///{embedded.data_dir / 'warpsmith.db'}", trials_of(embedded, job))


def study_equals_rows(storage: str, trials: list[dict[str, Any]]) -> None:
    """The Optuna study in the same database holds our finished trials."""
    (summary,) = optuna.get_all_study_summaries(storage)
    study = optuna.load_study(study_name=summary.study_name, storage=storage)
    ours = {
        str(sorted(t["configuration"].items())): t["outcome"].get("objective")
        for t in trials
        if t["state"] == "finished"
    }
    theirs = {
        str(sorted(t.params.items())): t.values[0] if t.state.name == "COMPLETE" else None
        for t in study.trials
    }
    assert theirs == ours


def kill_and_resume(service: Service) -> None:
    """SIGKILL everything in the middle of the search; no finished trial is repeated or lost."""
    job = service.submit(wide_job(trials=9))
    service.wait(job, lambda s: s["trials_done"] >= 3)
    before = finished(trials_of(service, job))
    service.kill()
    service.start()
    status = service.wait(job, ended)
    assert status["state"] == "done", status["detail"] + service.logs()
    after = finished(trials_of(service, job))
    assert len(after) == 9
    assert {k: after[k] for k in before} == before
    check_result(service.get(f"/v1/jobs/{job}/result"), 9)


REPEATED = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  const int i = get_global_id(0);
  if (i >= n) return;
  volatile float sum = 0.0f;
  for (int k = 0; k < REPEAT; ++k) sum = 2.0f * x[i];
  y[i] = sum;
}
"""


def test_an_old_result_is_checked_again(embedded: Service, capsys: pytest.CaptureFixture[str]) -> None:
    job = scale_job().model_dump(mode="json", exclude_unset=True)
    job["kernel"] |= {"source": REPEATED, "launch": {"grid": ["ceil_div(n, 64)"], "block": [64]}}
    job |= {"workloads": [{"dimensions": {"n": 65536}}], "rewrite": {"enabled": False}, "constraints": []}
    job["parameters"] = [{"name": "REPEAT", "values": [1, 8, 64], "default": 64}]
    job["budget"] = {"trials": 10, "seconds": 600}
    first = embedded.submit(job)
    assert embedded.wait(first, ended)["reason"]["code"] == "gain", embedded.logs()
    with pytest.raises(SystemExit) as end:
        main(["recheck", first, "--url", embedded.url])
    said = capsys.readouterr()
    assert end.value.code == 0, said.err
    assert re.search(r"^n=65536: [\d.]+x then, [\d.]+x \[.*\] now", said.out, re.M), said.out
    checked = embedded.get("/v1/jobs")["items"][0]
    assert checked["labels"] == {"rechecks": first}
    assert checked["trials_done"] <= 3


@pytest.mark.nightly
def test_embedded_resumes_after_sigkill(embedded: Service) -> None:
    kill_and_resume(embedded)


@pytest.fixture
def full(tmp_path: Path, postgres_url: str, redis_url: str) -> Iterator[Service]:
    """API and worker as separate processes on Postgres and Redis."""
    settings = {"WARPSMITH_DATABASE_URL": postgres_url, "WARPSMITH_BROKER_URL": redis_url}
    service = Service(tmp_path / "data", settings).start()
    yield service
    service.stop()


def test_full_mode_survives_sigkill_and_a_flushed_broker(full: Service, redis_url: str) -> None:
    kill_and_resume(full)
    # Another size, so that none of its trials was run before.
    job = full.submit(wide_job(trials=6, n=49152))
    full.wait(job, lambda s: s["trials_done"] >= 2)
    redis.Redis.from_url(redis_url).flushdb()
    status = full.wait(job, ended)
    assert status["state"] == "done", status["detail"] + full.logs()
    assert len(finished(trials_of(full, job))) == 6


def test_a_cancelled_job_stops_and_stays_cancelled(embedded: Service) -> None:
    job = embedded.submit(wide_job(trials=200))
    embedded.wait(job, lambda s: s["trials_done"] >= 2)
    reply = httpx2.post(f"{embedded.url}/v1/jobs/{job}/cancel", timeout=30, verify=NO_TLS)
    assert reply.status_code in (200, 202)
    assert embedded.wait(job, ended)["state"] == "cancelled"
    time.sleep(3)
    count = embedded.get(f"/v1/jobs/{job}")["trials_done"]
    time.sleep(2)
    status = embedded.get(f"/v1/jobs/{job}")
    assert status["state"] == "cancelled"
    assert status["trials_done"] == count
