"""What is drawn too large ends a child with words, and never the process that asked."""

import os
from pathlib import Path

import pytest

from tests.sandbox.kernels import plan
from tests.sandbox.test_confine import _attempts
from warpsmith.domain.device import DeviceInfo
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.sandbox import ChildOpener, ReferenceRunner

HUGE = 40_000_000_000
"""160 GB a buffer: more than any limit here, so that nothing of it is ever taken."""
SMALL_GROWTH_BYTES = 100 << 20


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_reference_of_160_gb_is_refused_by_its_own_child() -> None:
    before = _resident_bytes()
    source = "def reference(inputs, dims):\n    return {'y': inputs['x']}\n"
    with pytest.raises(InvalidInput, match=r"too large for a reference process: .*GiB") as caught:
        ReferenceRunner(timeout_s=20).numpy(source, "reference", plan(HUGE), {"n": HUGE})
    assert caught.value.field == "reference"
    assert _resident_bytes() - before < SMALL_GROWTH_BYTES


def test_inputs_of_160_gb_end_the_device_child_with_words(opencl_info: DeviceInfo) -> None:
    before = _resident_bytes()
    device = ChildOpener(opencl_info).open()
    try:
        with pytest.raises(ChildDied) as caught:
            device.prepare(plan(HUGE))
    finally:
        device.close()
    assert caught.value.cause == "device"
    assert _resident_bytes() - before < SMALL_GROWTH_BYTES


def test_a_device_child_takes_no_more_of_the_host_than_the_operator_permits(opencl_info: DeviceInfo) -> None:
    with pytest.raises(ChildDied):
        ChildOpener(opencl_info, memory_bytes=64 << 20).open().close()
    ChildOpener(opencl_info, memory_bytes=8 << 30).open().close()


def test_what_a_cuda_child_may_write_to_is_limited() -> None:
    """Its address space cannot be: the driver reserves far more than it uses."""
    assert _attempts(["allocate"], data_bytes=1 << 30) == {"allocate": "done too much"}
    assert _attempts(["allocate"]) == {"allocate": f"done {2 << 30} bytes"}


def test_where_memory_runs_out_a_child_goes_before_the_worker() -> None:
    assert _attempts(["oom-score"], read=["/proc"]) == {"oom-score": "done 1000"}
    assert int(Path("/proc/self/oom_score_adj").read_text()) < 1000
