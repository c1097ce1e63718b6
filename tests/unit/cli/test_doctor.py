"""`doctor`: what it concludes, and that neither a crashing driver nor a silent server ends it."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from db.admin import reachable
from testbed.deadlines import HANGS_S
from testbed.servers import free_port
from warpsmith import extras
from warpsmith.cli import machine_checks
from warpsmith.cli.diagnosis import Check, CheckState, concluded
from warpsmith.cli.doctor import show
from warpsmith.cli.installation_checks import installation_checks
from warpsmith.domain.device import Backend
from warpsmith.errors import ChildDied, Unavailable
from warpsmith.report.safe_console import SafeConsole
from warpsmith.sandbox.hosts.device_host import Probe
from warpsmith.settings import Settings
from warpsmith.testing.jobs import DEVICE

RAN = Check(subject="opencl device", state=CheckState.OK, detail="a CPU", tunes="OpenCL on the CPU")
NO_GPU = Check(subject="cuda device", state=CheckState.MISSING, detail="no driver", remedy="install one")
NO_DATABASE = Check(
    subject="database", state=CheckState.MISSING, detail="it is silent", remedy="start it", blocks=True
)


def checks_of(settings: Settings) -> dict[str, Check]:
    return {check.subject: check for check in installation_checks(settings)}


def test_one_back_end_is_enough() -> None:
    found = concluded("1", "", "3", [NO_GPU, RAN])
    assert found.can_tune
    assert found.reason == "OpenCL on the CPU"


def test_without_a_device_the_reason_names_every_back_end() -> None:
    found = concluded("1", "", "3", [NO_GPU])
    assert not found.can_tune
    assert found.reason == "no device: no driver"


def test_a_device_does_not_help_where_the_service_cannot_start() -> None:
    found = concluded("1", "", "3", [RAN, NO_DATABASE])
    assert not found.can_tune
    assert found.reason == "database: it is silent; start it"


def test_the_table_has_every_check_with_the_way_to_get_it() -> None:
    text = io.StringIO()
    show(concluded("1.2", "abc", "3.11", [NO_GPU, RAN]), SafeConsole(file=text, width=120))
    words = text.getvalue()
    assert "warpsmith 1.2 (abc, clean), Python 3.11" in words
    for part in ("cuda device", "missing", "no driver", "install one", "opencl device", "ok", "a CPU"):
        assert part in words
    assert words.rstrip().endswith("Ready: kernels can be tuned here (OpenCL on the CPU).")


def test_a_driver_that_crashes_is_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(backends: Sequence[Backend]) -> Probe:
        if Backend.CUDA in backends:
            raise ChildDied("signal", "SIGSEGV")
        return Probe((DEVICE,), {})

    monkeypatch.setattr(machine_checks, "launch_check", lambda *_: iter(()))
    found = {check.subject: check for check in machine_checks.machine_checks(Settings(), ask)}
    assert found["cuda device"].state is CheckState.MISSING
    assert "SIGSEGV" in found["cuda device"].detail
    assert found["opencl device"].state is CheckState.OK
    assert found["opencl device"].tunes == "OpenCL on test"


def test_a_device_that_runs_no_kernel_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise Unavailable("no compiler")

    monkeypatch.setattr(machine_checks, "launch_check", broken)
    found = machine_checks.machine_checks(Settings(), lambda backends: Probe((DEVICE,), {}))
    devices = [check for check in found if check.subject.endswith("device")]
    assert len(devices) == 3
    assert all(check.state is CheckState.MISSING and "no compiler" in check.detail for check in devices)


def test_a_crash_inside_a_driver_does_not_end_the_command(tmp_path: Path) -> None:
    """A PyCUDA whose import ends its process, as a broken driver does."""
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    ran = subprocess.run(
        [sys.executable, "-m", "warpsmith", "doctor", "--json"],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "WARPSMITH_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    found = {check["subject"]: check for check in json.loads(ran.stdout)["checks"]}
    assert found["cuda device"]["state"] == "missing"
    assert "the process that asked the driver ended" in found["cuda device"]["detail"]
    assert found["opencl device"]["state"] == "ok"
    assert "ran a kernel" in found["opencl device"]["detail"]


def test_a_data_folder_that_cannot_be_made_blocks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = checks_of(Settings(data_dir=tmp_path / "file" / "data"))["data folder"]
    assert check.state is CheckState.MISSING
    assert check.blocks
    assert "WARPSMITH_DATA_DIR" in check.remedy


def test_nothing_configured_is_nothing_missing(tmp_path: Path) -> None:
    found = checks_of(Settings(data_dir=tmp_path))
    assert {found[name].state for name in ("database", "broker", "model")} == {CheckState.NOT_USED}
    assert found["service"].state is found["data folder"].state is CheckState.OK
    assert list(tmp_path.iterdir()) == []


def test_servers_that_are_silent_block_and_no_password_is_shown(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        database_url=f"postgresql+psycopg://me:hunter2@127.0.0.1:{free_port()}/none",
        broker_url=f"redis://:hunter2@127.0.0.1:{free_port()}/0",
    )
    found = checks_of(settings)
    for name in ("database", "broker"):
        assert found[name].state is CheckState.MISSING
        assert found[name].blocks
        assert "does not answer" in found[name].detail
        assert "hunter2" not in found[name].detail
        assert f"WARPSMITH_{name.upper()}_URL" in found[name].remedy


def test_a_database_that_answers_is_named(tmp_path: Path, postgres_url: str) -> None:
    settings = Settings(data_dir=tmp_path, database_url=postgres_url)
    with pytest.raises(Unavailable, match=r"warpsmith migrate"):
        reachable.database(settings)
    from db import migrate

    migrate.upgrade(postgres_url)
    assert reachable.database(settings).startswith("postgresql")


@pytest.mark.parametrize(
    ("missing", "subject", "extra"),
    [("sqlalchemy", "service", "warpsmith[opencl]"), ("openai", "model", "warpsmith[models]")],
)
def test_a_missing_library_blocks_and_its_extra_is_named(
    missing: str, subject: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert extras.advice(missing) is not None
    monkeypatch.setitem(sys.modules, missing, None)
    found = checks_of(Settings(data_dir=tmp_path, openai_base_url="http://127.0.0.1:1/v1"))[subject]
    assert found.state is CheckState.MISSING
    assert found.blocks
    assert extra in found.remedy
