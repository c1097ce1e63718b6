"""Options and log parser for NVIDIA's Nsight Compute. Pure."""

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
"""Names of the facts by Nsight Compute metric. The list is short, since every group of metrics costs a pass
over the kernel."""
_ERROR = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)


def options(log_file: str, entry: str) -> list[str]:
    """Arguments for profiling one launch of one kernel, in base units, without locking the clocks.

    Args:
        entry: symbol of the kernel in the binary.
    """
    return [
        *("--csv", "--page", "raw", "--print-units", "base", "--log-file", log_file),
        *("--metrics", ",".join(COUNTERS), "--clock-control", "none", "--target-processes", "all"),
        *("--kernel-name-base", "mangled", "--kernel-name", entry, "--launch-count", "1"),
    ]


def parse(text: str) -> dict[str, float]:
    """The counters in a log, by the names of `COUNTERS`; metrics that the chip lacks are left out.

    Raises:
        Unavailable: the log has no counters; the message gives the log's reason if it has one.
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
    """The first error in a log, verbatim; empty if there is none."""
    error = _ERROR.search(text)
    return error.group(1).strip()[:300] if error else ""


def _table(text: str) -> str:
    """The lines from the CSV header on. Lines before it are messages that begin with `==`."""
    lines: Sequence[str] = [line for line in text.splitlines() if not line.startswith("==")]
    start = next((i for i, line in enumerate(lines) if '"Kernel Name"' in line), len(lines))
    return "\n".join(line for line in lines[start:] if line.strip())


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
