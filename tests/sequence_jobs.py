"""Jobs whose kernel is a sequence of launches: the example, and changes of it that must be refused."""

from collections.abc import Mapping
from typing import Any

from testbed.example_jobs import load_example
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job

FAMILY = "split_row_sum"


def row_sums(
    backend: Backend = Backend.OPENCL, replaced: Mapping[str, str] | None = None, **fields: Any
) -> Job:
    """The example on small shapes.

    Args:
        replaced: texts of the source, each by what stands in its place.
        fields: of the job, in place of the example's.
    """
    data = load_example(FAMILY, backend.value).model_dump(mode="json")
    for old, new in (replaced or {}).items():
        assert old in data["kernel"]["source"], old
        data["kernel"]["source"] = data["kernel"]["source"].replace(old, new)
    small = [{"dimensions": {"rows": 16, "columns": 4096}}, {"dimensions": {"rows": 5, "columns": 1003}}]
    return Job.model_validate(data | {"workloads": small} | fields)


def changed(**kernel: Any) -> dict[str, Any]:
    """The example as JSON with other fields of its kernel; None takes a field away."""
    data = row_sums().model_dump(mode="json")
    del data["kernel"]["entry"], data["kernel"]["launch"]
    data["kernel"] = {k: v for k, v in (data["kernel"] | kernel).items() if v is not None}
    return data
