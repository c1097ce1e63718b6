"""What to ask of NVIDIA's Nsight Compute, and how to read what it writes. Pure."""

import csv
import io
import re
from collections.abc import Sequence

from warpsmith.errors import Unavailable

COUNTERS: dict[str, str] = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_percent",
    "dram__bytes.sum": "dram_bytes",
    "lts__t_sector_hit_rate.pct": "l2_hit_percent",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_percent",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_percent",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue_percent",
}
"""Metrics by their name there, and the name of the fact. Few: every group costs a pass over the kernel."""
_ERROR = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)


def options(log_file: str, entry: str) -> list[str]:
    """Arguments for one launch of one kernel, in base units, clocks left as they are.

    Args:
        entry: the symbol in the binary.
    """
    return [
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", log_file),
        *("--metrics", ",".join(COUNTERS), "--clock-control", "none", "--target-processes", "all"),
        *("--kernel-name-base", "mangled", "--kernel-name", entry, "--launch-count", "1"),
    ]


def parse(text: str) -> dict[str, float]:
    """The counters in a log, by the names of `COUNTERS`; a metric that the chip lacks is left out.

    Raises:
        Unavailable: there are none; says why, where the log does.
    """
    rows = list(csv.reader(io.StringIO(_table(text))))
    if len(rows) < 3:
        raise Unavailable(complaint(text) or "no kernel was profiled")
    names, values = rows[0], rows[2]
    found = {}
    for name, value in zip(names, values, strict=False):
        number = _number(value)
        if name in COUNTERS and number is not None:
            found[COUNTERS[name]] = number
    if not found:
        raise Unavailable(complaint(text) or "this chip has none of the metrics that are asked for")
    return found


def complaint(text: str) -> str:
    """The first error in a log, in its own words; empty where there is none."""
    error = _ERROR.search(text)
    return error.group(1).strip()[:300] if error else ""


def _table(text: str) -> str:
    """The lines from the header on; what stands before are messages, which begin with `==`."""
    lines: Sequence[str] = [line for line in text.splitlines() if not line.startswith("==")]
    start = next((i for i, line in enumerate(lines) if '"Kernel Name"' in line), len(lines))
    return "\n".join(line for line in lines[start:] if line.strip())


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
