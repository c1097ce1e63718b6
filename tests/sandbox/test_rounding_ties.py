"""Integers that floats are rounded to: what is as right passes every check, and what is wrong does not."""

from collections.abc import Iterator

import pytest

from testbed.adversarial.harness import Harness
from testbed.repetitions import nightly
from testbed.rounded_integers import ROUNDINGS, Rounding
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import CompilePool


@pytest.fixture
def harness(opencl_info: DeviceInfo, pool: CompilePool) -> Iterator[Harness]:
    made = Harness(opencl_info, pool, pairs=4)
    yield made
    made.close()


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=lambda r: r.name)
def test_another_order_of_operations_passes_and_other_integers_do_not(
    harness: Harness, rounding: Rounding
) -> None:
    job = rounding.job()

    def verdict(element: str) -> tuple[bool, str]:
        kernel = job.kernel.model_copy(update={"source": rounding.source(element)})
        found = harness.try_candidate(job, Template(kernel=kernel))
        return found.accepted, found.reason

    count = len(rounding.right) if nightly() else 1
    for element in rounding.right[:count]:
        assert verdict(element) == (True, ""), element
    for element in rounding.wrong[-count:]:
        accepted, reason = verdict(element)
        assert not accepted, element
        assert "q is wrong" in reason
