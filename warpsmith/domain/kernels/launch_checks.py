"""Checks of a launch for one workload, before any device is known."""

from collections.abc import Mapping

from warpsmith.domain.expression_checks import DEVICE_NAMES, check_whole
from warpsmith.domain.expressions import Value
from warpsmith.domain.kernels.launch import Launch

MOST_BLOCKS = 16
"""Limit on the blocks of a cluster. Every device of compute capability 9.0 takes 8, and many take 16."""


def check_launch(launch: Launch, where: str, scope: Mapping[str, Value], workload: int) -> None:
    """Check that the extents are whole numbers that fit each other.

    Args:
        where: field of the launch.

    Raises:
        ValueError: they are not; the message names the field.
    """
    for part, extents in (("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster)):
        for m, extent in enumerate(extents):
            check_whole(f"{where}.{part}.{m}", extent, scope, workload, lowest=1)
    check_whole(f"{where}.shared_bytes", launch.shared_bytes, scope, workload, lowest=0)
    _check_cluster(launch, where, scope, workload)


def _check_cluster(launch: Launch, where: str, scope: Mapping[str, Value], workload: int) -> None:
    if any(e.names & DEVICE_NAMES for e in (*launch.grid, *launch.cluster)):
        return
    blocks, grid = 1, [e.integer(scope) for e in launch.grid]
    for m, extent in enumerate(launch.cluster):
        size = extent.integer(scope)
        along = grid[m] if m < len(grid) else 1
        blocks *= size
        if along % size:
            raise ValueError(
                f"{where}.cluster.{m}: the grid's {along} blocks along this axis are no multiple of "
                f"{size} (workload {workload})"
            )
    if blocks > MOST_BLOCKS:
        raise ValueError(
            f"{where}.cluster: {blocks} blocks; a cluster has at most {MOST_BLOCKS} (workload {workload})"
        )
