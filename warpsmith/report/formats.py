"""Formats of figures for templates: with their unit, and as many digits as are known."""

import json
import re
from datetime import UTC, datetime

from warpsmith.system.printable import one_line, printable

NONE = "–"
"""Shown for what is not known."""
_CLASS = re.compile(r"([a-z]+)-(.+?)(-portable-computing-language)?-(\d+(?:\.\d+)?)[\d.]*(?:-[a-z]+\d*)?")
_COMMON = {"pthread", "cpu", "r", "tm", "processor", "amd", "intel", "nvidia"}
"""Words of chips' names that tell none from another."""


def gain(value: float | None) -> str:
    """A speed-up, such as `1.23×`."""
    return NONE if value is None else f"{value:.2f}×"


def micros(value: float | None) -> str:
    """A time of a kernel in µs, with three digits or more."""
    if value is None:
        return NONE
    digits = 2 if value < 100 else 1 if value < 1000 else 0
    return f"{value:,.{digits}f} µs"


def seconds(value: float | None) -> str:
    """A time of a job, such as `4.2 s`, `3 min 20 s` or `2 h 5 min`."""
    if value is None:
        return NONE
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(value: int | None) -> str:
    """A number of things, such as `12,345`."""
    return NONE if value is None else f"{value:,}"


def share(value: float | None) -> str:
    """A part of a whole, such as `42 %`."""
    return NONE if value is None else f"{100 * value:.0f} %"


def usd(value: float) -> str:
    """A price."""
    return "$0" if value == 0 else f"${value:.4f}" if value < 0.01 else f"${value:.2f}"


def when(value: datetime | None) -> str:
    """A moment in UTC, to the second."""
    return NONE if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def age(value: datetime) -> str:
    """Time since a moment, such as `3 min`."""
    past_s = max(0.0, (datetime.now(UTC) - value).total_seconds())
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if past_s >= length_s:
            return f"{past_s // length_s:.0f} {unit}"
    return f"{past_s:.0f} s"


def configuration(values: dict[str, object] | None) -> str:
    """A configuration on one line."""
    if values is None:
        return "your kernel"
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "no parameters"


def short_class(value: str | None) -> str:
    """A device class by chip and driver, such as `EPYC, PoCL 3.0`; one of another form as it is."""
    found = _CLASS.fullmatch(value or "")
    if found is None:
        return value or NONE
    backend, chip, pocl, version = found.groups()
    words = [word.upper() for word in chip.split("-") if word not in _COMMON]
    driver = "PoCL" if pocl else {"opencl": "OpenCL"}.get(backend, backend.upper())
    return f"{' '.join(words[:2])}, {driver} {version}"


def json_text(value: object) -> str:
    """Data as JSON to read."""
    return printable(json.dumps(value, indent=1, ensure_ascii=False))


FILTERS = {
    "gain": gain,
    "us": micros,
    "s": seconds,
    "count": count,
    "share": share,
    "usd": usd,
    "when": when,
    "age": age,
    "configuration": configuration,
    "short_class": short_class,
    "json_text": json_text,
    "line": one_line,
    "lines": printable,
}
"""By the names under which templates use them."""
