"""Ceilings of a device in a file, so that later processes need not measure them again."""

import json
import logging
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.domain.device import Ceilings, DeviceInfo
from warpsmith.measure.ceiling_kernels import kernels_digest

HOST_KEEP_S = 3600.0
"""Longest age of ceilings of a host's cores, whose other work may have slowed the ceiling kernels."""
_CPU_LIMITS = (
    "cpufreq/scaling_max_freq",
    "cpufreq/scaling_governor",
    "intel_pstate/no_turbo",
    "cpufreq/boost",
)
"""Files below `/sys/devices/system/cpu` (the first two: of its first core) that limit clocks."""

log = logging.getLogger(__name__)


class CachedCeilings:
    """Implements `tuning.ports.CeilingsPort` with a file for each device.

    Ceilings hold for a device, its driver, its limits, this host, the clock limits of the moment and the
    ceiling kernels. Anything else than what they were measured with makes them unknown.

    Args:
        folder: trusted like the program itself: a ceiling decides which times are too short.
        clock_limits: the present limits of the device's clocks, in words.
        keep_s: age in seconds at which they are measured again; 0: this process alone keeps them, and for as
            long as it lives.
    """

    def __init__(
        self, folder: Path, device: DeviceInfo, clock_limits: Callable[[], str], keep_s: float
    ) -> None:
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{platform.node()}-{device.backend.value}-{device.uid}")
        self._path = folder / f"{name[:150]}.json"
        self._device = device
        self._clock_limits = clock_limits
        self._keep_s = min(keep_s, HOST_KEEP_S) if device.shares_host else keep_s
        self._own: tuple[dict[str, Any], Ceilings] | None = None

    def known(self) -> Ceilings | None:
        """See `CeilingsPort.known`."""
        identity = self._identity()
        if not self._keep_s:
            return self._own[1] if self._own is not None and self._own[0] == identity else None
        try:
            stored = json.loads(self._path.read_text())
            age_s = time.time() - float(stored["measured"])
            if stored["of"] != identity or not 0 <= age_s <= self._keep_s:
                return None
            return Ceilings.model_validate(stored["ceilings"])
        except (OSError, LookupError, TypeError, ValueError, ValidationError):
            return None

    def keep(self, ceilings: Ceilings) -> None:
        """See `CeilingsPort.keep`. If the disk is full, they are measured again next time."""
        identity = self._identity()
        if not self._keep_s:
            self._own = identity, ceilings
            return
        stored = {"of": identity, "measured": time.time(), "ceilings": ceilings.model_dump(mode="json")}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Written under another name first, so that a reader sees all of it or nothing.
            descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=".new-")
            with os.fdopen(descriptor, "w") as file:
                json.dump(stored, file, indent=1)
            Path(name).replace(self._path)
        except OSError as exc:
            log.warning("the ceilings of a device were not stored: %s", exc)

    def _identity(self) -> dict[str, Any]:
        """Conditions under which ceilings are measured, as JSON."""
        device = self._device
        return {
            "uid": device.uid,
            "driver": device.driver,
            "limits": device.limits.model_dump(mode="json"),
            "host": platform.node(),
            "cores": len(os.sched_getaffinity(0)) if device.shares_host else 0,
            "clocks": self._clock_limits(),
            "kernels": kernels_digest(),
        }


def host_clock_limits(root: Path = Path("/")) -> str:
    """Limits on the clocks of the host's cores, in words; empty if the system does not say.

    Args:
        root: folder that contains `sys`.
    """
    found = []
    for name in _CPU_LIMITS:
        for place in ("cpu0", ""):
            with suppress(OSError):
                found.append(f"{name} {(root / 'sys/devices/system/cpu' / place / name).read_text().strip()}")
    return ", ".join(found)
