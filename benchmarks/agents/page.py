"""The record of `benchmarks.agents.strategies` as a page."""

import statistics
from collections.abc import Sequence
from typing import Any

from warpsmith.domain.job import Strategy

Row = dict[str, Any]

NOTES = (
    "`template`: agents write templates, a search sets their parameters.",
    "`direct`: agents rewrite once a round, one kernel each, no parameters; no more trials than rounds.",
    "`direct` with `rules`: one rule more each round, every value fixed before any measurement.",
    "`search`: the job's own parameters and lifted constants, no agent. Where there is neither, the space "
    "is one configuration, and 1.00 is all that can come out.",
    "A seed is that of the search order. `direct` has none, so its spread is that of the measurement alone.",
    "Neither rules nor recorded replies call a model, so tokens are 0; replies are counted in characters.",
)
COLUMNS = (
    *("job", "answers by", "strategy", "speed-up", "candidates", "trials (rejected)"),
    *("device s", "job s", "tokens", "characters of replies"),
)
MEDIANS = ("candidates", "trials", "rejected", "device_s", "job_s")


def page(record: dict[str, Any]) -> str:
    """The record as a page."""
    limits, runs = record["limits"], record["runs"]
    lines = [
        "# Three strategies, the same limits",
        "",
        f"{record['device']}, {record['driver']}. Commit {record['commit']}, {record['when']}.",
        f"`{record['command']}`",
        "",
        f"Limits of a job: {limits['rounds']} rounds, {limits['trials']} trials, {limits['seconds']:g} s; "
        f"{limits['seeds']} seeds; the last {limits['workloads']} workload(s) of the example.",
        record["remark"],
        "",
        *(f"- {note}" for note in NOTES),
        "",
        "Speed-up: verified, median over seeds [lowest, highest].",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in runs:
        groups.setdefault((row["job"], row["provider"], row["strategy"]), []).append(row)
    ordered = sorted(groups.items(), key=lambda group: (group[0][0], group[0][1] != "rules"))
    fallbacks = [f for r in runs for f in r["fallbacks"]]
    changed = [d for r in runs for d in r["replay_differences"]]
    unfinished = [f"{r['job']} {r['strategy']}: {r['detail']}" for r in runs if r["state"] != "done"]
    lines += [
        *(_line(key, rows) for key, rows in ordered),
        "",
        f"{len(runs)} jobs, each replayed from its records without a model: {len(changed)} differences.",
        f"Recorded replies that were of no use, so that the rules answered: {len(fallbacks)}.",
        f"Jobs that failed: {len(unfinished)}.",
        *(f"- {text}" for text in [*sorted(set(fallbacks)), *sorted(set(changed)), *unfinished]),
        "",
    ]
    return "\n".join(lines)


def _line(key: tuple[str, str, str], rows: Sequence[Row]) -> str:
    speedups = sorted(r["speedup"] for r in rows)
    job, provider, strategy = key
    who = "rules" if provider == "rules" else f"recorded replies of {rows[0]['by']}"
    if strategy == Strategy.SEARCH.value:
        who = "nobody"
    middle = {n: statistics.median(r[n] for r in rows) for n in MEDIANS}
    cells = (
        job,
        who,
        strategy,
        f"{statistics.median(speedups):.2f} [{speedups[0]:.2f}, {speedups[-1]:.2f}]",
        f"{middle['candidates']:g}",
        f"{middle['trials']:g} ({middle['rejected']:g})",
        f"{middle['device_s']:.1f}",
        f"{middle['job_s']:.0f}",
        str(max(r["tokens"] for r in rows)),
        str(max(r["reply_characters"] for r in rows)),
    )
    return "| " + " | ".join(cells) + " |"
