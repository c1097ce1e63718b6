"""Plans the pools of a worker for the queues that it serves."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from db.message_names import (
    AGENT_QUEUE,
    COMPILE_PREFIX,
    CONTROL_QUEUE,
    DEVICE_PREFIX,
    WEBHOOK_QUEUE,
    compile_queue,
    device_queue,
)
from warpsmith.child_environment import child_environment
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.errors import Unavailable
from warpsmith.processes.cores import usable_cores

ALL_DEVICES = "gpu"
"""Name in `--queues` for the queues of all devices found here."""
ALL_COMPILERS = "compile"
"""Name in `--queues` for everything that can be compiled here for devices of other machines."""
CUDA_COMPILER_S = 60.0
DELIVERIES = 8
"""Concurrent deliveries of webhooks of a worker. They only wait for others, so that threads are enough."""

_PATH = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
_LOAD_NVRTC = "from warpsmith.backends.cuda.compile import import_compiler; import_compiler()"


@dataclass(frozen=True)
class PoolPlan:
    """Queues and processes of a Celery pool, and its device."""

    name: str
    queues: tuple[str, ...]
    concurrency: int
    device: DeviceInfo | None = None
    compiles_for: tuple[DeviceInfo, ...] = ()
    """Local devices whose platform compiles for others."""
    threads: bool = False
    """True if its work is done by threads of one process, which starts when there is such work."""

    @property
    def compile_slots(self) -> int:
        """Number of concurrent compilations for others."""
        return self.concurrency if any(q.startswith(COMPILE_PREFIX) for q in self.queues) else 0


def plan_pools(
    queues: Sequence[str],
    devices: Sequence[DeviceInfo],
    concurrency: int,
    compile_workers: int = 0,
    missing: Mapping[str, str] | None = None,
) -> list[PoolPlan]:
    """The pools that serve `queues`: one without a device, one for webhooks, one for compilers, one a device.

    Args:
        concurrency: processes for queues without a device; 0: two.
        compile_workers: concurrent compilations for others; 0: one per core.
        missing: reasons why queues of compilers cannot be served here.

    Raises:
        Unavailable: this machine can serve none of them.
    """
    light = tuple(q for q in queues if q in (CONTROL_QUEUE, AGENT_QUEUE))
    plans = [PoolPlan("light", light, max(2, concurrency))] if light else []
    if WEBHOOK_QUEUE in queues:
        plans.append(PoolPlan("webhooks", (WEBHOOK_QUEUE,), DELIVERIES, threads=True))
    plans += _compilers(queues, devices, compile_workers or usable_cores(), missing or {})
    for number, device in enumerate(devices):
        name = device_queue(device.device_class)
        if ALL_DEVICES in queues or name in queues:
            plans.append(PoolPlan(f"device{number}", (name,), 1, device))
    known = {ALL_DEVICES, ALL_COMPILERS, *(q for plan in plans for q in plan.queues)}
    for queue in queues:
        if queue not in known:
            raise Unavailable(
                f"nothing on this machine serves queue {queue!r}; queues are {CONTROL_QUEUE}, {AGENT_QUEUE}, "
                f"{WEBHOOK_QUEUE}, {ALL_COMPILERS}, {ALL_DEVICES} or {DEVICE_PREFIX}<device class>"
            )
    if not plans:
        raise Unavailable("there is no device on this machine, and no other queue was asked for")
    return plans


def compilers_missing() -> dict[str, str]:
    """Missing compilers that could serve any machine, by queue, with the reason."""
    try:
        tried = subprocess.run(
            [sys.executable, "-I", "-c", _PATH + _LOAD_NVRTC, json.dumps([p for p in sys.path if p])],
            env=child_environment(Backend.CUDA),
            capture_output=True,
            text=True,
            check=False,
            timeout=CUDA_COMPILER_S,
        )
    except subprocess.TimeoutExpired:
        return {COMPILE_PREFIX + "cuda": f"NVRTC was not loaded within {CUDA_COMPILER_S:g} s"}
    if tried.returncode == 0:
        return {}
    return {COMPILE_PREFIX + "cuda": (tried.stderr.strip() or "no reason given").splitlines()[-1][:300]}


def _compilers(
    queues: Sequence[str], devices: Sequence[DeviceInfo], workers: int, missing: Mapping[str, str]
) -> list[PoolPlan]:
    if ALL_COMPILERS not in queues:
        return []
    own = tuple(d for d in devices if d.backend.language.is_opencl_c)
    served = [q for q in (COMPILE_PREFIX + "cuda",) if q not in missing]
    served += sorted({compile_queue(d) for d in own})
    if not served:
        words = "; ".join(f"{queue}: {why}" for queue, why in missing.items())
        raise Unavailable(f"this machine compiles nothing for others ({words})")
    return [PoolPlan("compile", tuple(served), workers, compiles_for=own)]
