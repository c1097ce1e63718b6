"""Variables of a source that the job fills, on a GPU."""

from typing import Any

import pytest

from tests.gpu.test_arguments import baseline_of
from tests.symbol_jobs import SOURCE, TAPS, blur_job
from warpsmith.domain.device import DeviceInfo
from warpsmith.sandbox import CompilePool

DEVICE = SOURCE.replace("__constant__", "__device__")
IN_NAMESPACE = SOURCE.replace(
    "__constant__ float taps[TAPS];", "namespace a { __constant__ float taps[TAPS]; }"
)
WRITES = "    y[i] = sum;\n    if (i == 0) taps[0] = 0.0f;"


@pytest.mark.parametrize(
    "source",
    [SOURCE, DEVICE, IN_NAMESPACE.replace("+= taps[t]", "+= a::taps[t]")],
    ids=["constant", "device", "namespace"],
)
def test_a_filled_variable_is_right_in_every_case(source: str, info: DeviceInfo, pool: CompilePool) -> None:
    found = baseline_of(blur_job(source=source, n=100_000), info, pool)
    assert found.refused == ""
    assert len({c.family for c in found.cases}) > 4


@pytest.mark.parametrize(
    ("symbol", "source", "words"),
    [
        ({}, DEVICE.replace("    y[i] = sum;", WRITES), "changed the read-only taps"),
        ({"shape": [6]}, SOURCE, "symbol taps: has 24 bytes in the job and 20 in the kernel"),
        ({}, SOURCE.replace("+= taps[t] *", "+= 0.5f * taps[t] *"), "y is wrong"),
    ],
    ids=["written", "size", "wrong"],
)
def test_a_symbol_is_compared_and_a_wrong_one_is_named(
    symbol: dict[str, Any], source: str, words: str, info: DeviceInfo, pool: CompilePool
) -> None:
    job = blur_job([TAPS | symbol], source=source, n=100_000)
    assert words in baseline_of(job, info, pool).refused
