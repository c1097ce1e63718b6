"""A kernel against itself on PoCL: noise is not called faster or slower.

In the small; `benchmarks.trust.same_kernel` does the same 200 times on a device.
"""

import pytest

from benchmarks.trust.same_kernel import CLAIMS, one
from testbed.adversarial.corpus import task_job
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend
from warpsmith.domain.templates.outcome import Verdict

TASKS = ("silu_and_mul", "softmax", "stencil")
MOST = 2
"""Of six comparisons; at five false claims in a hundred, three or more come once in 450 runs."""


@pytest.mark.alone
def test_a_kernel_is_not_faster_than_itself(harness: Harness) -> None:
    rows = [row for task in TASKS for row in one(harness, task_job(task, Backend.OPENCL))]
    assert len(rows) == 2 * len(TASKS)
    verdicts = [Verdict(row["verdict"]) for row in rows]
    assert sum(v in CLAIMS for v in verdicts) <= MOST, rows
