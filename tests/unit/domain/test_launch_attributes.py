"""Clusters and cooperative launches in the job form, in the rules, and in what the user gets."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.launch_attribute_jobs import CLUSTERED, COOPERATIVE, sharing
from warpsmith.backends.replay import LIMITS
from warpsmith.domain.jobs.launch_size import LaunchSize, evaluated
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox.transport.messages import size_from_json, size_to_json
from warpsmith.tuning.session.launch_limits import beyond_limits


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (
            {"cluster": [3]},
            "kernel.launch.cluster.0: the grid's 16 blocks along this axis are no multiple of 3",
        ),
        ({"cluster": [1, 2]}, "kernel.launch.cluster.1: the grid's 1 blocks"),
        ({"cluster": [32], "grid": [64]}, "32 blocks; a cluster has at most 16"),
        ({"cluster": ["n - n"]}, "kernel.launch.cluster.0: 'n - n' is 0, below 1"),
    ],
)
def test_a_cluster_that_the_grid_does_not_hold_is_refused(launch: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match="cluster") as caught:
        sharing(CLUSTERED, **launch)
    assert words in str(caught.value)


@pytest.mark.parametrize("launch", [{"cluster": [2]}, {"cooperative": True}])
def test_opencl_has_neither(launch: dict[str, Any]) -> None:
    data = sharing(COOPERATIVE, **launch).model_dump(mode="json")
    data["kernel"]["backend"] = "opencl"
    with pytest.raises(ValidationError, match=f"launch.{next(iter(launch))}: OpenCL's groups cannot wait"):
        type(sharing(COOPERATIVE)).model_validate(data)


@pytest.mark.parametrize(
    ("source", "launch"),
    [
        (COOPERATIVE, {"cooperative": True}),
        (CLUSTERED, {"cluster": [4]}),
        (CLUSTERED.replace("void share", "void __cluster_dims__(4) share"), {}),
    ],
)
def test_rules_leave_grid_and_block_of_joined_blocks_alone(source: str, launch: dict[str, Any]) -> None:
    job = sharing(source, **launch)
    report = make_template(job)
    assert {a.rule for a in report.template.applied} <= {"unroll", "launch_bounds", "fast_math"}
    assert any(str(d).startswith("block_size: the launch joins blocks") for d in report.declined)
    made = report.template.kernel.launch
    assert (made.grid, made.block) == (job.kernel.launch.grid, job.kernel.launch.block)


def test_the_attributes_reach_the_device_child() -> None:
    job = sharing(CLUSTERED, cluster=["n // 512"], cooperative=True)
    size = evaluated(job.kernel, {"n": 1024})
    assert size == LaunchSize((16, 1, 1), (64, 1, 1), 0, (), (2, 1, 1), cooperative=True)
    assert size.has_attributes
    assert size_from_json(size_to_json(size)) == size


def test_a_configuration_whose_grid_is_no_multiple_is_rejected() -> None:
    size = LaunchSize((6, 1, 1), (64, 1, 1), cluster=(4, 1, 1))
    assert "no multiple of the cluster" in beyond_limits(size, LIMITS)
