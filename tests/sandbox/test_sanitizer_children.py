"""Children of a sanitizer that are started in advance: used, waited for, given up, and ended."""

import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from tests.sandbox.kernels import SCALE, kernel, source
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.sandbox import ChildOpener, CompilePool, probe_devices
from warpsmith.sandbox.hosts import sanitize_host
from warpsmith.sandbox.hosts.device_host import WatchedDevice
from warpsmith.sandbox.hosts.sanitize_host import TOOLS, Sanitizer
from warpsmith.testing.kernels import plan, size

TOOL = """#!/bin/sh
# Runs what it is given, and says that it found nothing; the tool of HANGS does not get so far.
while :; do
  case "$1" in
    --log-file) log=$2; shift 2 ;;
    --tool) tool=$2; shift 2 ;;
    --*) shift 2 ;;
    *) break ;;
  esac
done
[ "$tool" = "HANGS" ] && sleep 600
"$@"
echo "ERROR SUMMARY: 0 errors" > "$log"
"""


@dataclass(frozen=True)
class Opener(ChildOpener):
    """Counts the children that it starts under a tool."""

    started: list[WatchedDevice] = field(default_factory=list)
    counting: threading.Lock = field(default_factory=threading.Lock)

    def start_watched(self, under: Sequence[str]) -> WatchedDevice:
        made = super().start_watched(under)
        with self.counting:
            self.started.append(made)
        return made


@pytest.fixture(scope="module")
def info() -> DeviceInfo:
    found = probe_devices([Backend.OPENCL]).devices[0]
    return found.model_copy(
        update={"limits": found.limits.model_copy(update={"total_memory_bytes": 80 << 30})}
    )


@pytest.fixture(scope="module")
def compiled(info: DeviceInfo) -> Compiled:
    pool = CompilePool(1)
    found = pool.submit(kernel(Backend.OPENCL, source(Backend.OPENCL, SCALE)), info).result()
    pool.close()
    assert isinstance(found, Compiled), found
    return found


def sanitizer(info: DeviceInfo, folder: Path, hangs: str = "none") -> tuple[Sanitizer, Opener]:
    tool = folder / "tool"
    tool.write_text(TOOL.replace("HANGS", hangs))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    opener = Opener(info)
    return Sanitizer(opener, tool), opener


def found(by: Sanitizer, compiled: Compiled) -> dict[str, str]:
    return dict(by.findings(compiled, plan(1000), size()))


def test_what_waits_is_used(
    info: DeviceInfo, compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitize_host, "SETTLE_S", HANGS_S)
    made, opener = sanitizer(info, tmp_path)
    made.expect(1)
    made.settle()
    assert len(opener.started) == len(TOOLS)
    assert found(made, compiled) == dict.fromkeys(TOOLS, "")
    assert len(opener.started) == len(TOOLS), "no further child was started"
    assert found(made, compiled) == dict.fromkeys(TOOLS, "")
    assert len(opener.started) == 2 * len(TOOLS), "each serves once"


def test_a_child_that_is_not_ready_in_time_is_given_up(
    info: DeviceInfo, compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitize_host, "SETTLE_S", 1.0)
    made, opener = sanitizer(info, tmp_path, hangs="racecheck")
    made.expect(1)
    made.settle()
    assert not any(device._process.alive for device in opener.started)
    sanitizer(info, tmp_path)  # the tool is mended
    assert found(made, compiled) == dict.fromkeys(TOOLS, "")


def test_what_was_not_used_is_ended(info: DeviceInfo, tmp_path: Path) -> None:
    made, opener = sanitizer(info, tmp_path)
    made.expect(2)
    assert len(opener.started) == 2 * len(TOOLS)
    made.drop()
    assert not any(device._process.alive for device in opener.started)


def test_no_more_wait_than_the_device_has_room_for(info: DeviceInfo, tmp_path: Path) -> None:
    small = info.limits.model_copy(update={"total_memory_bytes": 8 << 30})
    made, opener = sanitizer(info.model_copy(update={"limits": small}), tmp_path)
    made.expect(3)
    assert opener.started == []
