"""A job too large for the worker that took it ends with words before anything is drawn."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from db.engine import Database
from db.repositories.jobs import JobRepository
from db.repositories.workers import WorkerRepository
from db.views.job_status import job_status
from tests.worker.test_execute import SilentNotifier, handle_all
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.state import JobState
from warpsmith.sandbox import probe_devices
from warpsmith.settings import Settings
from warpsmith.testing.jobs import scale_job
from worker.device.device_setup import RealDeviceSetup
from worker.device.process_context import Context

SMALL_GROWTH_BYTES = 100 << 20


@pytest.fixture(scope="module")
def pocl() -> DeviceInfo:
    """This machine's OpenCL device."""
    return next(d for d in probe_devices().devices if d.backend is Backend.OPENCL)


@pytest.fixture
def context(database: Database, tmp_path: Path, pocl: DeviceInfo) -> Iterator[Context]:
    """A worker with that device, whose messages the test handles."""
    with database.write() as session:
        WorkerRepository(session).register("w", "host", 1, "0", ["control"], [pocl], {})
    url = database.engine.url.render_as_string(hide_password=False)
    settings = Settings(data_dir=tmp_path, database_url=url, lease_s=5, renew_s=1)
    setup = RealDeviceSetup(settings, pocl)
    yield Context(settings, database, SilentNotifier(), "w", setup)
    setup.close()


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_this_machine_says_its_memory(pocl: DeviceInfo) -> None:
    assert pocl.host_memory_bytes > 1 << 30


@pytest.mark.parametrize("n", [3_000_000_000, 100_000_000_000])
def test_a_job_of_24_or_800_gb_fails_at_once_and_the_worker_stays_small(context: Context, n: int) -> None:
    with context.database.write() as session:
        job = scale_job(workloads=[{"dimensions": {"n": n}}])
        job_id = JobRepository(session).create(job)[0].id
    before = resident_bytes()
    handle_all(context)
    with context.database.read() as session:
        status = job_status(session, job_id)
    assert status.state is JobState.FAILED
    assert f"workloads.0.dimensions: n={n} (x alone is {n * 4 // 10**9} GB)" in status.detail
    assert resident_bytes() - before < SMALL_GROWTH_BYTES
