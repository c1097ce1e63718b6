"""What the records of `jobs.py` keep of a run, their summaries and their pages."""

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.trust.record import in_words, share

Row = dict[str, Any]
LIMITS = {False: 1.1, True: 1.25}
"""Largest ratio of the shown figure to the verified one that is wanted; True: beside busy processes."""


def shown(statuses: Sequence[Row]) -> Row:
    """Figures that the status showed before the verification was over.

    `shown_last` is the best speed-up when the verification began, or the last one before the end where
    nothing was verified.
    """
    live = [s for s in statuses if s["state"] not in ("done", "failed", "cancelled")]
    begun = next((i for i, s in enumerate(live) if s["state"] == "verifying"), len(live))
    figures = [s["best_speedup"] for s in live[: begun + 1] if s["best_speedup"] is not None]
    last = statuses[-1] if statuses else {"feasible": None, "trials_done": None}
    return {
        "shown_last": figures[-1] if figures else None,
        "shown_most": max(figures, default=None),
        "feasible": last["feasible"],
        "trials_done": last["trials_done"],
    }


def shortened(result: Row) -> Row:
    """The figures of a result; sources follow from the commit, the rules and the configuration."""
    kept = ("workload", "verdict", "speedup", "baseline_us", "best_us", "aa_width", "pairs")
    refusals = [
        {k: str(r[k])[:200] for k in ("stage", "reason")} | {"count": r["count"]}
        for r in result["rejections"]
    ]
    return {
        "state": result["state"],
        "why": (result.get("reason") or {}).get("sentence", "") or result["detail"],
        "speedup": result["speedup"],
        "comparisons": [{k: c[k] for k in kept} for c in result["comparisons"]],
        "no_gain": result["no_gain"],
        "trials": result["trials_measured"] + result["trials_rejected"] + result["trials_cut_short"],
        "rejected": result["trials_rejected"],
        "rejections": refusals,
    }


def with_ratio(row: Row) -> Row:
    """A run with the figure that was shown last over the one that was verified, where there are both."""
    live, verified = row.get("shown_last"), row.get("speedup")
    return row | {"ratio": live / verified if live and verified else None}


def geometric_mean(figures: Sequence[float]) -> float | None:
    """None: there are no figures."""
    return math.exp(sum(map(math.log, figures)) / len(figures)) if figures else None


def totals(rows: Sequence[Row]) -> Row:
    """Summary of runs: a job without a result leaves the kernel as it is, so its speed-up counts as 1."""
    ratios = [r["ratio"] for r in map(with_ratio, rows) if r["ratio"] is not None]
    return {
        "jobs": len(rows),
        "failed": sum("failed" in r or r.get("state") != "done" for r in rows),
        "speedup": geometric_mean([r.get("speedup") or 1.0 for r in rows]),
        "gained": sum(any(c["verdict"] == "faster" for c in r.get("comparisons", ())) for r in rows),
        "refused": share(sum(r.get("rejected", 0) for r in rows), sum(r.get("trials", 0) for r in rows)),
        "shown over verified": geometric_mean(ratios),
        "with a live figure": len(ratios),
        "seconds": round(sum(r["seconds"] for r in rows), 1),
    }


def live_series(rows: Sequence[Row], busy: int) -> Row:
    """A series of the record: rows, and how many of those with a live figure are within the limit."""
    rated = [with_ratio(row) for row in rows]
    ratios = [row["ratio"] for row in rated if row["ratio"] is not None]
    limit = LIMITS[busy > 0]
    return {
        "busy": busy,
        "limit": limit,
        "within": sum(ratio <= limit for ratio in ratios),
        "of": len(ratios),
        "mean": geometric_mean(ratios),
        "largest": max(ratios, default=None),
        "smallest": min(ratios, default=None),
        "rows": rated,
    }


def pairs_page(record: Row) -> str:
    """Both trees as a page."""
    trees = {"before": record["before"], "after": record["commit"]}
    lines = [
        "# Nine kernels of other projects, tuned by two trees",
        "",
        f"{record['device']}, {record['cores']} cores, before {record['before']}, after {record['commit']}, "
        f"{record['when']}. `{record['command']}`",
        "",
        "`shown` is the best speed-up in the status when the verification began. `verified` is the result's, "
        "where a kept baseline counts as 1; so does a job that failed. The tree that goes first changes from "
        "kernel to kernel.",
        "",
        "| tree | jobs with a gain | verified, geometric mean | shown over verified, mean | trials refused |",
        "|---|---|---|---|---|",
    ]
    for which, commit in trees.items():
        t = totals([pair[which] for pair in record["pairs"]])
        means = (
            f"{_times(t['speedup'])} | {_number(t['shown over verified'])} ({t['with a live figure']} jobs)"
        )
        lines.append(
            f"| {which} ({commit}) | {t['gained']} of {t['jobs']} | {means} | {in_words(t['refused'])} |"
        )
    lines += [
        "",
        *_table(
            [(pair["kernel"], which, pair[which]) for pair in record["pairs"] for which in trees], "tree"
        ),
    ]
    lines += ["", "Refused trials, by reason:", ""]
    lines += [
        f"- {pair['kernel']}, {which}: {r['count']} at {r['stage']}: {_cell(r['reason'])}"
        for pair in record["pairs"]
        for which in trees
        for r in pair[which].get("rejections", ())
    ] or ["none."]
    return "\n".join(lines) + "\n"


def live_page(record: Row) -> str:
    """All series as a page."""
    lines = ["# What the status shows before it is verified", ""]
    lines += ["The ratio is the last live figure over the verified speed-up; jobs without one are left out."]
    for series in record["series"]:
        lines += [
            "",
            f"## {series['busy']} busy processes beside it" if series["busy"] else "## Quiet machine",
            "",
            f"{series['device']}, {series['cores']} cores, commit {series['commit']}, {series['when']}. "
            f"`{series['command']}`",
            "",
            f"{series['within']} of {series['of']} are at most {series['limit']}; geometric mean "
            f"{_number(series['mean'])}, from {_number(series['smallest'])} to {_number(series['largest'])}.",
            "",
            *_table([(row["kernel"], row["seed"], row) for row in series["rows"]], "seed"),
        ]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[tuple[str, object, Row]], second: str) -> list[str]:
    lines = [
        f"| kernel | {second} | shown | verified | ratio | comparison [95 %] | trials | refused | seconds "
        "| load | why |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kernel, key, row in rows:
        end = f"{row['seconds']:.0f} | {row['load']}"
        if "failed" in row:
            lines.append(f"| {kernel} | {key} | | | | failed | | | {end} | {_cell(row['failed'])} |")
            continue
        of = "" if row["feasible"] is None else f" of {row['feasible']}"
        cells = (
            kernel,
            key,
            _times(row["shown_last"]),
            _times(row["speedup"]),
            _number(with_ratio(row)["ratio"]),
            "; ".join(map(_compared, row["comparisons"])) or "not compared",
            f"{row['trials']}{of}",
            row["rejected"],
        )
        lines.append(f"| {' | '.join(map(str, cells))} | {end} | {_cell(row['why'])} |")
    return lines


def _compared(comparison: Row) -> str:
    s = comparison["speedup"]
    return f"{s['estimate']:.2f} [{s['low']:.2f}, {s['high']:.2f}] {comparison['verdict']}"


def _number(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def _times(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}x"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:200]
