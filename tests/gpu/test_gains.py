"""What the rules and the search gain on fourteen plain kernels is held, as Helion holds its own.

`WARPSMITH_WRITE_GAINS=1` writes what was measured into `gains.json`: gains over the kernel as posted. Those
over PyTorch's own operators, beside what Helion 26-08 gains there, are in `benchmarks/results/agents`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.production.service import embedded_service
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.clients.client import Client
from warpsmith.job_files.jobfile import load_job

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).parent / "gains.json"
FILES = sorted((ROOT / "examples").glob("*/cuda.yaml")) + sorted((RECORD.parent / "gains").glob("*.yaml"))
HELD: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
BAND = 0.9
"""Helion's band: a gain may be a tenth lower than recorded."""
SECONDS, TRIALS = 15, 40


def short(path: Path) -> Job:
    """A job with a budget of seconds, by the rules."""
    job = load_job(path)
    budget = {"rounds": 1, "trials": TRIALS, "seconds": SECONDS}
    return Job.model_validate(job.model_dump() | {"agents": {"provider": "rules"}, "budget": budget})


@pytest.fixture(scope="module")
def gains(info: DeviceInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, float]]:
    """Gain of each job by the name of its kernel, all tuned one after another by one service."""
    data = tmp_path_factory.mktemp("gains")
    settings = {"WARPSMITH_REUSE_TRIALS_S": "0", "WARPSMITH_REMEMBERS": "false"}
    with embedded_service(data, settings) as client:
        found = {job.kernel.entry: gain_of(client, job) for job in map(short, FILES)}
    if os.environ.get("WARPSMITH_WRITE_GAINS"):
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
    yield found


def gain_of(client: Client, job: Job) -> float:
    """Verified gain over the kernel as posted; 1 where it is kept."""
    id_ = client.submit(job).id
    client.wait(id_, timeout_s=20 * SECONDS)
    result = client.result(id_)
    assert result.state.value == "done", result.detail
    print(f"{job.kernel.entry}: {result.speedup or 1.0:.2f}x", flush=True)
    return round(result.speedup or 1.0, 3)


def test_fourteen_kernels_are_held() -> None:
    assert len(HELD) >= 14


@pytest.mark.parametrize("name", sorted(HELD))
def test_a_gain_is_kept(name: str, gains: dict[str, float]) -> None:
    assert gains[name] >= BAND * HELD[name]
