"""What the records of this folder have in common."""

from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

from benchmarks.provenance import plain_command
from warpsmith.commit import commit_name
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.sandbox import probe_devices

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def wilson(hits: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share: it has a width even where nothing was hit."""
    if of == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = hits / of
    middle = share + z * z / (2 * of)
    half = z * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    whole = 1 + z * z / of
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def share(hits: int, of: int) -> dict[str, Any]:
    """A rate with its interval."""
    low, high = wilson(hits, of)
    return {"hits": hits, "of": of, "rate": hits / of if of else None, "low": low, "high": high}


def in_words(rate: dict[str, Any]) -> str:
    """`3 of 107 (2.8 %, 95 % interval 1.0 to 7.9 %)`."""
    if not rate["of"]:
        return "none run"
    percents = (100 * rate[k] for k in ("rate", "low", "high"))
    return "{} of {} ({:.1f} %, 95 % interval {:.1f} to {:.1f} %)".format(rate["hits"], rate["of"], *percents)


def first_device(backend: Backend) -> DeviceInfo:
    """The device to measure on."""
    probe = probe_devices()
    found = [d for d in probe.devices if d.backend is backend]
    if not found:
        raise SystemExit(f"no {backend.value} device: {dict(probe.unavailable)}")
    return found[0]


def where(device: DeviceInfo, command: str) -> dict[str, Any]:
    """Device, commit, time and command of a record."""
    return {
        "device": device.name,
        "driver": device.driver,
        "backend": device.backend.value,
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command(command),
    }
