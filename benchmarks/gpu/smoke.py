"""Measure the examples as they are on the GPU of this machine, through the real children.

    python -m benchmarks.gpu.smoke [--backend cuda] [family ...]

One line a workload: compile time, cold and hot µs, largest error in tolerances; then what each step of
a search trial costs. A first look before anything longer is run.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.job_files import FAMILIES, load
from warpsmith.domain.device import Backend
from warpsmith.domain.job import CacheState
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import launch_size
from warpsmith.errors import ChildDied
from warpsmith.measure.protocol import search_plan
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, probe_devices
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts

Made = TypeVar("Made")


def steps(session: DeviceSession) -> None:
    """Milliseconds of each step of a trial on the first workload."""
    kernel = session.inputs.user_template.configured(session.job.space.defaults)
    compiled = session.compile(kernel)
    assert not isinstance(compiled, Rejected)
    for workload in session.job.workloads:
        size = launch_size(kernel, workload, session.info)
        device = session.device(workload)
        session.expected.of(workload)
        handle, load_ms = milliseconds(lambda: device.load(compiled))
        loaded, key = LoadedKernel(handle, workload, size), session.inputs.plan(workload).key
        _, check_ms = milliseconds(lambda: session.checker.check(loaded, whole=False))
        _, time_ms = milliseconds(lambda: device.time(handle, key, size, search_plan(CacheState.COLD)))
        print(
            f"    {workload.key}: ms load {load_ms:.1f}, check {check_ms:.1f}, time {time_ms:.1f}", flush=True
        )


def milliseconds(step: Callable[[], Made]) -> tuple[Made, float]:
    """What a step returns, and how long it took."""
    began = time.monotonic()
    made = step()
    return made, 1000 * (time.monotonic() - began)


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--backend", default="cuda")
    arguments = parser.parse_args()
    began = time.monotonic()
    probe = probe_devices()
    print(f"probe {time.monotonic() - began:.2f} s; unavailable: {dict(probe.unavailable)}")
    devices = [d for d in probe.devices if d.backend is Backend(arguments.backend)]
    if not devices:
        raise SystemExit("no device")
    print(devices[0].model_dump_json())
    pool = CompilePool()
    for family in arguments.families or FAMILIES:
        session = DeviceSession(
            load(family, arguments.backend), SessionPorts(ChildOpener(devices[0]), pool, ReferenceRunner())
        )
        began = time.monotonic()
        try:
            result = measure_baseline(session)
            print(f"{family}: {time.monotonic() - began:.1f} s; {result.facts}; A/A {result.aa_width:.4f}")
            print(f"  {result.refused}" if result.refused else "", flush=True)
            for t in result.timings:
                assert t.cold is not None
                assert t.hot is not None
                print(
                    f"  {t.workload}: cold {t.cold.median_us:.2f} "
                    f"[{t.cold.low_us:.2f}, {t.cold.high_us:.2f}] "
                    f"hot {t.hot.median_us:.2f} launches {t.cold.launches_per_sample} error {t.max_error:.3f}"
                )
            if not result.refused:
                steps(session)
        except (ChildDied, AssertionError, ValueError) as exc:
            print(f"{family}: {type(exc).__name__}: {exc}", flush=True)
        finally:
            session.close()
    pool.close()


if __name__ == "__main__":
    main()
