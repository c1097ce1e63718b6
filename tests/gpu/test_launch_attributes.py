"""Cooperative launches and clusters on a GPU, checked, timed and refused as any other launch."""

from typing import Any

import pytest

from tests.gpu.test_arguments import baseline_of
from tests.launch_attribute_jobs import CLUSTERED, COOPERATIVE, sharing
from warpsmith.domain.device import DeviceInfo
from warpsmith.sandbox import CompilePool


def numpy_reference(clusters: int) -> str:
    """Sums over the blocks of a cluster, element by element."""
    return f"""
import numpy as np
def reference(inputs, dims):
    rows = inputs["x"].reshape(-1, {clusters}, 64)
    y = np.broadcast_to(rows.sum(axis=1, keepdims=True), rows.shape).reshape(-1)
    return {{"y": y, "sums": np.full(y.shape, {clusters}.0)}}
"""


def test_blocks_of_a_cooperative_launch_wait_for_each_other(info: DeviceInfo, pool: CompilePool) -> None:
    found = baseline_of(sharing(COOPERATIVE, blocks=64, cooperative=True), info, pool)
    assert found.refused == ""
    assert found.timings


@pytest.mark.parametrize("blocks", [2, 8, 16])
def test_blocks_of_a_cluster_read_each_other(info: DeviceInfo, pool: CompilePool, blocks: int) -> None:
    job = sharing(CLUSTERED, blocks=64, cluster=[blocks])
    reference: dict[str, Any] = {"kind": "numpy", "source": numpy_reference(blocks)}
    data = {**job.model_dump(mode="json"), "reference": reference}
    found = baseline_of(type(job).model_validate(data), info, pool)
    assert found.refused == ""
    assert found.timings


def test_a_cooperative_launch_that_does_not_fit_is_refused(info: DeviceInfo, pool: CompilePool) -> None:
    job = sharing(COOPERATIVE, blocks=1 << 16, cooperative=True)
    found = baseline_of(job, info, pool)
    assert "TOO_LARGE" in found.refused
