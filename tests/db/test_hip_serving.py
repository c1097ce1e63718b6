"""Which workers serve HIP jobs: those with a device of AMD or of NVIDIA, whatever else they lack."""

from typing import Any

import pytest

from db.engine import Database
from db.repositories.workers import WorkerRepository
from db.views.unserved_jobs import unserved
from testbed.rows import add_job
from warpsmith.cli.diagnosis import CheckState
from warpsmith.cli.machine_checks import machine_checks
from warpsmith.domain.device import Backend, DeviceInfo, lacking
from warpsmith.sandbox.hosts import device_host
from warpsmith.sandbox.hosts.device_host import Probe
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE

NO_CUDA, NO_HIP = "cuda: no driver", "hip: hip-python is missing"
NVIDIA = DEVICE.model_copy(update={"backend": Backend.CUDA, "uid": "a", "name": "H200"})
AMD = DEVICE.model_copy(update={"backend": Backend.HIP, "uid": "b", "name": "MI300X"})


class Child:
    """Answers as the child that asks the drivers."""

    def __init__(self, devices: list[DeviceInfo], unavailable: dict[str, str]) -> None:
        self.reply = {"devices": [d.model_dump(mode="json") for d in devices], "unavailable": unavailable}
        self.channel = self

    def receive(self, _until: float, _most: int) -> tuple[dict[str, Any], list[bytes]]:
        return self.reply, []

    def kill(self) -> None:
        pass


def probed(monkeypatch: pytest.MonkeyPatch, devices: list[DeviceInfo], unavailable: dict[str, str]) -> Probe:
    monkeypatch.setattr(device_host, "ChildProcess", lambda *_, **__: Child(devices, unavailable))
    return device_host.probe_devices()


@pytest.mark.parametrize(
    ("devices", "said", "left"),
    [
        ([NVIDIA], {"hip": NO_HIP}, {}),
        ([AMD], {"cuda": NO_CUDA}, {"cuda": NO_CUDA}),
        ([], {"cuda": NO_CUDA, "hip": NO_HIP}, {"cuda": NO_CUDA, "hip": NO_HIP}),
        ([DEVICE], {"cuda": NO_CUDA, "hip": NO_HIP}, {"cuda": NO_CUDA, "hip": NO_HIP}),
    ],
    ids=["NVIDIA", "AMD", "neither", "OpenCL"],
)
def test_a_worker_serves_hip_jobs_on_either_device_and_else_says_why_for_both(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    devices: list[DeviceInfo],
    said: dict[str, str],
    left: dict[str, str],
) -> None:
    probe = probed(monkeypatch, devices, said)
    assert probe.unavailable == left
    able = [d for d in devices if d.backend in Backend.HIP.runs_on]
    with database.write() as session:
        workers = WorkerRepository(session)
        workers.register("w", "here", 1, "0", [], probe.devices, dict(probe.unavailable))
        assert [d.uid for d in workers.of_backend("hip")] == [d.uid for d in able]
        job = add_job(session)
        job.backend = "hip"
        found = unserved(session, job, limit_s=0.0)
    if able:
        assert found is None
    else:
        assert found is not None
        assert list(found.lacking) == ["hip-python is missing; cuda: no driver"]


def test_reasons_are_those_of_every_back_end_whose_devices_would_do() -> None:
    said = {"cuda": NO_CUDA, "hip": NO_HIP, "opencl": "opencl: none"}
    assert lacking(said, Backend.HIP) == f"{NO_HIP}; {NO_CUDA}"
    assert lacking(said, Backend.TRITON) == NO_CUDA
    assert lacking({}, Backend.HIP) == ""
    assert Probe((), said).lacking(Backend.HIP) == f"{NO_HIP}; {NO_CUDA}"
    assert Probe((), {}).lacking(Backend.TRITON) == "no cuda device was found"


@pytest.mark.parametrize(("here", "state"), [([NVIDIA], CheckState.NOT_USED), ([], CheckState.MISSING)])
def test_doctor_says_where_hip_jobs_run_and_that_nothing_ran_on_amd_hardware(
    monkeypatch: pytest.MonkeyPatch, here: list[DeviceInfo], state: CheckState
) -> None:
    monkeypatch.setattr("warpsmith.cli.machine_checks.launch_check", lambda *_: iter(()))

    def ask(backends: Any) -> Probe:
        return Probe(tuple(d for d in here if d.backend in backends), {"hip": NO_HIP})

    found = {check.subject: check for check in machine_checks(Settings(), ask)}["hip device"]
    assert found.state is state
    assert "hip-python is missing; HIP jobs run on NVIDIA devices through headers" in found.detail
    assert found.detail.endswith("warpsmith has not run on AMD hardware")
    assert "install warpsmith[hip]" in found.remedy
