"""What a new user is told of a kernel that leaves elements of its output alone."""

import pytest

from warpsmith.domain.device import DeviceInfo
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts

INSIDE = """
__kernel void scale(__global const float* x, __global float* y, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    if (i > 0 && i < n - 9) y[i] = 2.0f * x[i];
}
"""


@pytest.mark.parametrize("reference", ["kernel", "numpy"])
def test_the_border_of_a_stencil_is_called_unwritten(
    opencl_info: DeviceInfo, pool: CompilePool, reference: str
) -> None:
    """Not: two runs on the same inputs differ, element 0 is 4.3e+33, wanted 6.6e+30."""
    job = scale_job()
    fields = job.model_dump() | {"kernel": job.kernel.model_dump() | {"source": INSIDE}}
    if reference == "kernel":
        fields["reference"] = {"kind": "kernel"}
    session = DeviceSession(
        type(job).model_validate(fields), SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner())
    )
    refused = measure_baseline(session).refused
    session.close()
    assert "y is wrong: 10 of 4096 elements were never written, the first is element 0" in refused
    assert "where y keeps what it holds, its role is inout" in refused
    assert "two runs" not in refused
    assert "e+" not in refused
