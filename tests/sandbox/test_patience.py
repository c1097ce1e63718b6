"""A configuration that its compiler never ends with, after others of the same template."""

import time

import pytest

from testbed.deadlines import HANGS_S, stretched
from tests.sandbox.conftest import PoolMaker
from tests.sandbox.kernels import kernel, source
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.sandbox.hosts import compile_deadlines

DOUBLING = "".join(f"#define A{k + 1} A{k} A{k}\n" for k in range(40))
TEXT = source(
    Backend.OPENCL,
    "#if BOMB\n y[i] = x[i] + (0 A40);\n#else\n y[i] = 2.0f * x[i];\n#endif\n",
    f"#define A0 +1\n{DOUBLING}",
)


def test_one_that_hangs_after_quick_ones_is_given_up_early(
    make_pool: PoolMaker, opencl_info: DeviceInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_deadlines, "LEAST_S", stretched(2))
    monkeypatch.setattr(compile_deadlines, "RATIO", 3.0)
    pool = make_pool(timeout_s=60)
    template = kernel(Backend.OPENCL, TEXT)
    for n in range(compile_deadlines.ENOUGH):
        quick = template.model_copy(update={"defines": {"BOMB": "0", "N": str(n)}})
        assert isinstance(pool.submit(quick, opencl_info).result(HANGS_S), Compiled)
    began = time.monotonic()
    bomb = template.model_copy(update={"defines": {"BOMB": "1", "N": "0"}})
    result = pool.submit(bomb, opencl_info).result(HANGS_S)
    assert isinstance(result, Rejected)
    assert time.monotonic() - began < stretched(30)
    assert "others of this template took a fraction" in result.reason
