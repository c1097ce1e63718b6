"""Measure the examples as they are on the GPU of this machine, through the real children.

    python -m benchmarks.gpu.smoke [--backend cuda] [--out FILE] [family ...]

A line of JSON a family: seconds of the baseline, times and errors of every workload, and what each step of
a search trial costs. A first look before anything longer is run.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.job_files import FAMILIES, load
from benchmarks.provenance import head
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend
from warpsmith.domain.job import CacheState
from warpsmith.domain.launch_size import launch_size
from warpsmith.domain.outcome import Rejected
from warpsmith.errors import ChildDied
from warpsmith.measure.protocol import search_plan
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts

Made = TypeVar("Made")


def steps(session: DeviceSession) -> list[dict[str, Any]]:
    """Milliseconds of each step of a trial, on every workload."""
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    compiled = session.compile(kernel)
    assert not isinstance(compiled, Rejected)
    found = []
    for workload in session.job.workloads:
        size = launch_size(kernel, workload, session.info)
        device = session.device(workload)
        session.expected.of(workload)
        handle, load_ms = milliseconds(lambda: device.load(compiled))
        loaded, key = LoadedKernel(handle, workload, size), session.inputs.plan(workload).key
        _, check_ms = milliseconds(lambda: session.checker.check(loaded, whole=False))
        _, time_ms = milliseconds(lambda: device.time(handle, key, size, search_plan(CacheState.COLD)))
        steps_ms = {"load": round(load_ms, 1), "check": round(check_ms, 1), "time": round(time_ms, 1)}
        found.append({"workload": workload.key, "steps_ms": steps_ms})
    return found


def looked_at(session: DeviceSession) -> dict[str, Any]:
    """The baseline of a job and the steps of a trial, or why there is none."""
    began = time.monotonic()
    try:
        result = measure_baseline(session)
        row: dict[str, Any] = {
            "seconds": round(time.monotonic() - began, 1),
            "aa_width": result.aa_width,
            "refused": result.refused,
            "timings": [t.model_dump(mode="json") for t in result.timings],
        }
        return row if result.refused else row | {"steps": steps(session)}
    except (ChildDied, AssertionError, ValueError) as exc:
        return {"failed": f"{type(exc).__name__}: {exc}"}


def milliseconds(step: Callable[[], Made]) -> tuple[Made, float]:
    """What a step returns, and how long it took."""
    began = time.monotonic()
    made = step()
    return made, 1000 * (time.monotonic() - began)


def main() -> int:
    """See the module's text. Exits with 1 if a baseline was refused or failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--out", type=Path, help="JSON file")
    arguments = parser.parse_intermixed_args()
    began = time.monotonic()
    device = first_device(Backend(arguments.backend))
    record = head(device, "python -m benchmarks.gpu.smoke " + " ".join(sys.argv[1:]))
    record |= {"probe_s": round(time.monotonic() - began, 2), "families": {}}
    print(device.model_dump_json())
    pool = CompilePool()
    for family in arguments.families or FAMILIES:
        ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner())
        session = DeviceSession(load(family, arguments.backend), ports)
        try:
            record["families"][family] = looked_at(session)
        finally:
            session.close()
        print(family, json.dumps(record["families"][family]), flush=True)
    pool.close()
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    return int(any("failed" in f or f["refused"] for f in record["families"].values()))


if __name__ == "__main__":
    sys.exit(main())
