"""Children that have started before they are asked for."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.errors import ChildDied
from warpsmith.sandbox import ChildOpener
from warpsmith.sandbox.hosts import spare_children


@pytest.fixture
def opener(opencl_info: DeviceInfo) -> Iterator[ChildOpener]:
    """Of a real device, which is said not to be the host's processor, so that it gets spares."""
    yield ChildOpener(opencl_info.model_copy(update={"shares_host": False, "uid": "spared"}))
    spare_children.end_all()


def waiting() -> list[int]:
    """Process ids of the spares of that device."""
    return [c._process.pid for c in spare_children._waiting.get((os.getpid(), "spared"), [])]


def folders() -> list[Path]:
    """Private folders of the spares."""
    return [c.private for c in spare_children._waiting.get((os.getpid(), "spared"), [])]


def test_a_second_child_is_one_that_had_started(opener: ChildOpener) -> None:
    first = opener.open()
    began = waiting()
    assert len(began) == spare_children.COUNT
    second = opener.open()
    assert second._process._process.pid == began[0]
    assert len(waiting()) == spare_children.COUNT
    first.close()
    second.close()


def test_a_spare_that_was_killed_is_replaced(opener: ChildOpener) -> None:
    opener.open().close()
    killed = waiting()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    device = opener.open()
    assert device._process._process.pid not in killed
    assert device._process.alive
    assert not set(waiting()) & set(killed)
    device.close()


def test_spares_of_a_thread_that_ended_do_no_harm(opener: ChildOpener) -> None:
    """Some end with it, those do not that were still starting."""

    def briefly(pause_s: float) -> None:
        opener.open().close()
        time.sleep(pause_s)

    for pause_s in (0.0, 3.0):
        thread = threading.Thread(target=briefly, args=[pause_s])
        thread.start()
        thread.join()
        for _ in range(spare_children.COUNT + 1):
            device = opener.open()
            assert device._process.alive
            device.close()
    assert all(Path(f"/proc/{pid}").exists() for pid in waiting())


def test_a_spare_that_cannot_open_the_device_leaves_it_to_a_fresh_child(opencl_info: DeviceInfo) -> None:
    absent = opencl_info.model_copy(update={"shares_host": False, "uid": "spared", "index": 63})
    opener = ChildOpener(absent)
    spare_children.refill("spared", lambda: opener._start(False, ()))
    with pytest.raises(ChildDied):
        opener.open()
    spare_children.end_all()


def test_nothing_is_left_in_the_end(opener: ChildOpener) -> None:
    opener.open().close()
    pids, private = waiting(), folders()
    assert all(folder.exists() for folder in private)
    spare_children.end_all()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(folder.exists() for folder in private)


def test_a_device_that_is_the_host_gets_no_spares(opencl_info: DeviceInfo) -> None:
    assert opencl_info.shares_host
    ChildOpener(opencl_info).open().close()
    assert (os.getpid(), opencl_info.uid) not in spare_children._waiting
