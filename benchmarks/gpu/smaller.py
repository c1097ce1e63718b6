"""The jobs of the examples with fewer workloads, where device time is short."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpsmith.domain.job import Job, Workload
from warpsmith.jobfile import load_job


def smallest(workloads: Sequence[Workload], count: int) -> tuple[Workload, ...]:
    """So many of the workloads, those with the smallest product of dimensions; 0: all."""
    if not count:
        return tuple(workloads)
    ranked = sorted(workloads, key=lambda w: math.prod(w.dimensions.values()))
    return tuple(w for w in workloads if w in ranked[:count])


def with_smallest(job: Job, count: int) -> Job:
    """The job with only these workloads."""
    return job.model_copy(update={"workloads": smallest(job.workloads, count)})


def fields_of(job_file: Path, count: int) -> dict[str, Any]:
    """The JSON of such a job, as a client posts it."""
    return with_smallest(load_job(job_file), count).model_dump(mode="json", exclude_unset=True)
