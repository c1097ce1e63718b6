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
FILES = {path.parent.name: path for path in (ROOT / "examples").glob("*/cuda.yaml")}
FILES |= {path.stem: path for path in (RECORD.parent / "gains").glob("*.yaml")}
BAND = 0.9
"""Helion's band: a gain may be a tenth lower than recorded."""
SECONDS, TRIALS = 15, 40
SETTINGS = {"WARPSMITH_REUSE_TRIALS_S": "0", "WARPSMITH_REMEMBERS": "false"}


@pytest.fixture(scope="module")
def client(info: DeviceInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service with a worker on this device, in which no job knows what another found."""
    with embedded_service(tmp_path_factory.mktemp("gains"), SETTINGS) as made:
        yield made


def held() -> dict[str, float]:
    """The recorded gains by name."""
    found: dict[str, float] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def gain_of(client: Client, path: Path) -> float:
    """Verified gain over the kernel as posted, by the rules; 1 where it is kept."""
    budget = {"rounds": 1, "trials": TRIALS, "seconds": SECONDS}
    changes = {"agents": {"provider": "rules"}, "budget": budget}
    id_ = client.submit(Job.model_validate(load_job(path).model_dump() | changes)).id
    client.wait(id_, timeout_s=20 * SECONDS)
    result = client.result(id_)
    assert result.state.value == "done", result.detail
    return round(result.speedup or 1.0, 3)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_gain_is_kept(name: str, client: Client) -> None:
    gain = gain_of(client, FILES[name])
    print(f"{name}: {gain}x", flush=True)
    if os.environ.get("WARPSMITH_WRITE_GAINS"):
        RECORD.write_text(json.dumps(dict(sorted((held() | {name: gain}).items())), indent=1) + "\n")
    assert gain >= BAND * held()[name]


def test_fourteen_kernels_are_held() -> None:
    assert len(FILES) >= 14 and held().keys() == FILES.keys()
