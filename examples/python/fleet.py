"""Tunes several job files on a running service, and prints one table.

    warpsmith serve --embedded &
    python examples/python/fleet.py examples/softmax/opencl.yaml examples/stencil/opencl.yaml

The jobs are submitted in order, and awaited together. The script may be stopped and started again: the same
files go on with the same jobs, because the idempotency key is made of their content.
"""

import argparse
import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from warpsmith import AsyncClient, Client, Job, Result, WarpsmithError, load_job

KEY = os.environ.get("WARPSMITH_API_KEY")


def submit(url: str, jobs: Sequence[Job]) -> list[str]:
    """Submit the jobs; their ids."""
    contents = [hashlib.sha256(job.model_dump_json().encode()).hexdigest() for job in jobs]
    with Client(url, KEY) as client:
        return [client.submit(job, content).id for job, content in zip(jobs, contents, strict=True)]


async def results(url: str, job_ids: Sequence[str], timeout_s: float) -> list[Result | BaseException]:
    """The result of each job, or what went wrong with it."""
    async with AsyncClient(url, KEY) as client:

        async def result(job_id: str) -> Result:
            await client.wait(job_id, timeout_s=timeout_s)
            return await client.result_of(job_id)

        return await asyncio.gather(*map(result, job_ids), return_exceptions=True)


def line(job: Job, found: Result | BaseException) -> str:
    """One row of the table."""
    if isinstance(found, BaseException):
        return f"{job.name:32} {'-':>9} {'-':>9}  {found}"
    speedup = "-" if found.speedup is None else f"{found.speedup:.2f}x"
    gained = sum(w.configuration is not None for w in found.workloads)
    return f"{job.name:32} {speedup:>9} {gained:>5} of {len(found.workloads)}  {found.reason}"


def main() -> int:
    """Run the script; its exit status is the number of jobs without a result."""
    options = argparse.ArgumentParser(description="Tune several job files on a running service.")
    options.add_argument("files", nargs="+", type=Path, help="job files")
    options.add_argument("--url", default="http://127.0.0.1:8765", help="address of the service")
    options.add_argument("--out", type=Path, help="folder for a bundle of each job")
    options.add_argument("--timeout", type=float, default=3600, help="seconds to wait for a job")
    given = options.parse_args()
    try:
        jobs = [load_job(path) for path in given.files]
        job_ids = submit(given.url, jobs)
    except WarpsmithError as error:
        sys.exit(f"error: {error}")
    found = asyncio.run(results(given.url, job_ids, given.timeout))
    print(f"{'job':32} {'speed-up':>9} {'faster on':>10}  why it ended")
    for job, job_id, result in zip(jobs, job_ids, found, strict=True):
        print(line(job, result))
        if given.out is not None and isinstance(result, Result):
            result.save(given.out / job_id)
    return sum(isinstance(result, BaseException) for result in found)


if __name__ == "__main__":
    sys.exit(main())
