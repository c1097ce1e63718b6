"""The record of `benchmarks.agents.clock` as a page, and the means over its workloads."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from warpsmith.measure.statistics import speedup_interval

Row = dict[str, Any]
Times = tuple[float, float]
"""Times of the user's kernel and of the served one, µs."""

COLUMNS = (
    *("workload", "their clock, µs", "ratio of means", "of medians", "device, hot, µs", "ratio"),
    *("device, cold, µs", "ratio", "share of floor", "compared, and right"),
)
ABOUT = """\
Their clock is that of Astra's test scripts (arXiv 2509.07506): {warm_up} calls to warm up and {timed} timed
ones, an event before and one after each call, a wait after each; the last rows are arithmetic means of
times and of ratios, as theirs. The host's work for a launch is within it, and inputs stay in the cache.
Here a call is a launch from Python through PyCUDA, the same way for both kernels, of which {pairs} such
blocks each take turns (A B B A or B A A B); theirs is a call of a PyTorch operator, which takes another
time for its baseline than for its kernel. Figures are to be compared within a table only.

Device times are the service's own, without the host: `v` from the verification of the job (paired
processes, launches checked), `b` from its baseline, `h` taken here with the same blocks and checks. Hot:
inputs in the cache; cold: as many sets of buffers as leave the cache between two launches of one. The share
of the floor is the verification's, in the cache state of the job's objective. Every argument that a kernel
writes is compared, all elements, with the reference. A workload that keeps the user's own kernel has the
ratio 1.
"""


def call_figures(blocks: dict[str, list[list[float]]]) -> Row:
    """What their clock says of one workload.

    Args:
        blocks: µs of each timed call by side (`A`: the user's kernel, `B`: what serves; without it, A
            serves) and block; as many blocks on both sides.
    """
    flat = {side: [t for block in of for t in block] for side, of in blocks.items()}
    best = flat.get("B", flat["A"])
    ratio = {"estimate": 1.0, "low": 1.0, "high": 1.0}
    if "B" in blocks:
        ratio = speedup_interval(blocks["A"], blocks["B"]).model_dump()
    return {
        "mean_us": [statistics.fmean(flat["A"]), statistics.fmean(best)],
        "median_us": [statistics.median(flat["A"]), statistics.median(best)],
        "ratio_of_means": statistics.fmean(flat["A"]) / statistics.fmean(best),
        "ratio_of_medians": ratio,
    }


def means(pairs: Sequence[Times]) -> Row | None:
    """Means over workloads, arithmetic of times and of ratios, geometric of ratios; None: there are none."""
    if not pairs:
        return None
    ratios = [base / best for base, best in pairs]
    return {
        "workloads": len(pairs),
        "base_us": statistics.fmean(base for base, _ in pairs),
        "best_us": statistics.fmean(best for _, best in pairs),
        "arithmetic": statistics.fmean(ratios),
        "geometric": statistics.geometric_mean(ratios),
    }


def summary(rows: Sequence[Row]) -> Row:
    """The means of every clock over the workloads that have it."""
    calls = [(*r["calls"]["mean_us"],) for r in rows if r.get("calls")]
    found: Row = {"calls": means(calls)}
    for cache in ("hot", "cold"):
        times = [r["device"][cache] for r in rows if r.get("device", {}).get(cache)]
        found[cache] = means([(t["base_us"], t["best_us"]) for t in times])
    return found


def page(record: Row) -> str:
    """The record as Markdown."""
    lines = [
        "# Astra's own clock beside device time",
        "",
        f"{record['device']}, driver {record['driver']}, commit {record['commit']}, {record['when']}.  ",
        f"`{record['command']}`",
        "",
        ABOUT.format(**record["protocol"]),
        *(f"Tuned by `{c['command']}` at {c['commit']}.  " for c in record["tuned_by"]),
        "",
    ]
    if record["clock"] != "events":
        lines += [f"This device has no such events; a call is timed by {record['clock']}.", ""]
    for name, job in record["jobs"].items():
        lines += [f"## {name}", "", *_job(job), ""]
    return "\n".join(lines)


def _job(job: Row) -> Iterator[str]:
    if "failed" in job:
        yield f"No figures: {job['failed']}."
        return
    yield f"Tuned on {job['device']}, driver {job['driver']}. Verified speed-up {job['speedup']:.2f}."
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for row in job["rows"]:
        yield f"| {' | '.join(_cells(row))} |"
    for kind in ("arithmetic", "geometric"):
        yield f"| {' | '.join(_mean_cells(job['summary'], kind))} |"


def _cells(row: Row) -> tuple[str, ...]:
    calls, named = row.get("calls"), row["workload"] + ("" if row["served"] else ", own kernel kept")
    clock = ("-",) * 3
    if calls:
        of = calls["ratio_of_medians"]
        words = f"{of['estimate']:.2f} [{of['low']:.2f}, {of['high']:.2f}]" if row["served"] else "1"
        clock = (_times(*calls["mean_us"]), f"{calls['ratio_of_means']:.2f}", words)
    share = row.get("floor_share")
    device = (cell for cache in ("hot", "cold") for cell in _device(row.get("device", {}).get(cache)))
    problems = "; ".join(row["problems"]).replace("|", "/").replace("\n", " ")
    right = ", ".join(row["compared"]) if row["right"] else "no"
    shown = "-" if share is None else f"{share:.2f}"
    return (named, *clock, *device, shown, f"{right}. {problems}" if problems else right)


def _device(found: Row | None) -> tuple[str, str]:
    if found is None:
        return "-", "-"
    return f"{_times(found['base_us'], found['best_us'])} {found['from'][0]}", f"{found['ratio']:.2f}"


def _times(base_us: float, best_us: float) -> str:
    return f"{base_us:.2f} → {best_us:.2f}"


def _mean_cells(found: Row, kind: str) -> tuple[str, ...]:
    cells = [f"**{kind} mean{', as theirs' if kind == 'arithmetic' else ''}**"]
    for clock in ("calls", "hot", "cold"):
        of = found[clock]
        times = _times(of["base_us"], of["best_us"]) if of and kind == "arithmetic" else "-"
        cells += [times, f"{of[kind]:.2f}" if of else "-", *(["-"] if clock == "calls" else [])]
    return (*cells, "-", "-")
