"""The record of `benchmarks.agents.gpu` as a page, and the statistics over its kernels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Row = Mapping[str, Any]
ORDER = ("own", "rules", "direct", "template", "old_question", "two_rounds", "ideas", "tools", "guides")
AGAINST = (
    ("template", "direct"),
    ("template", "rules"),
    ("template", "own"),
    ("ideas", "template"),
    ("tools", "template"),
    ("tools", "direct"),
    ("guides", "tools"),
    ("template", "old_question"),
    ("two_rounds", "template"),
)
SEED, RESAMPLES = 7, 10_000
NOTES = (
    "`own`: the user's own constants searched. `rules`: the rewrite rules and a search.",
    "`direct`: a model rewrites once, no search follows.",
    "`template`: a model writes a template beside the rules' own, and a search sets its parameters.",
    "`ideas`: as `template`, for two ideas of the planner. `tools`: as `template`, with eight calls that "
    "compile, check, time, profile. `guides`: as `tools`, with guides to read.",
    "`old_question`: as `template`, asked before questions were pages. `two_rounds`: as `template`, with a "
    "second round in the same seconds.",
    "Each reply was written by a fresh reader of that one question and used as it came. Other roles are "
    "the rules'.",
    "Speed-up: device time, verified in pairs against the kernel as it was posted. A workload that keeps its "
    "kernel counts as 1, and so does a job that failed. A kernel's figure is the weighted geometric mean of "
    "its workloads.",
)
DEVICE_STAGES = ("baseline", "search", "tools", "verification")
MEANS = (
    "arm",
    "kernels",
    "mean [95 % over kernels]",
    "above 1",
    "trials",
    "device s",
    "tokens read",
    "tokens written",
)
STAGES = f"{' / '.join(DEVICE_STAGES)}, s"
KERNELS = ("kernel", "seed", "arm", "speed-up", "trials (rejected)", "served by", STAGES, "end")
WORKLOADS = ("kernel", "seed", "arm", "workload (weight)", "base → best, µs", "speed-up [95 %]", "of floor")


def page(record: Row) -> str:
    """The record as Markdown."""
    rows = record["jobs"]
    devices = sorted({f"{r['device']}, {r['driver']}" for r in rows})
    lines = [
        "# A model, the rules and the search",
        "",
        f"{'; '.join(devices)}. Answers: {record['answers_by']}.",
        "",
    ]
    lines += [f"`{c['command']}` at {c['commit']}" + "  " for c in record["calls"]]
    lines += ["", *(f"- {note}" for note in NOTES), ""]
    if record["missing"]:
        lines += [f"Not ended: {', '.join(record['missing'])}.", ""]
    lines += [*_means(rows), "", *_replies(rows), "", *_kernels(rows), "", *_workloads(rows)]
    return "\n".join(lines) + "\n"


def kernel_speedups(rows: Sequence[Row], arm: str) -> dict[str, float]:
    """By kernel: the geometric mean over seeds of an arm's speed-ups."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["arm"] == arm:
            found.setdefault(row["kernel"], []).append(math.log(row["speedup"]))
    return {kernel: math.exp(sum(logs) / len(logs)) for kernel, logs in found.items()}


def interval(logs: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean with its 95 % bootstrap interval over kernels."""
    values = np.asarray(logs)
    picks = np.random.default_rng(SEED).integers(0, values.size, size=(RESAMPLES, values.size))
    means = values[picks].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return math.exp(float(values.mean())), math.exp(float(low)), math.exp(float(high))


def _means(rows: Sequence[Row]) -> Iterator[str]:
    arms = [a for a in ORDER if any(r["arm"] == a for r in rows)]
    by_arm = {arm: kernel_speedups(rows, arm) for arm in arms}
    yield from _header(MEANS)
    for arm in arms:
        mine = [r for r in rows if r["arm"] == arm]
        mean, low, high = interval([math.log(s) for s in by_arm[arm].values()])
        gains = sum(s > 1 for s in by_arm[arm].values())
        trials = sum(r["trials"] for r in mine)
        device = sum(r["stages_s"].get(s, 0) for r in mine for s in DEVICE_STAGES)
        tokens = (_tokens(mine, text) for text in ("prompt", "reply"))
        shown = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
        cells = (arm, str(len(by_arm[arm])), shown, str(gains), str(trials), f"{device:.0f}", *tokens)
        yield f"| {' | '.join(cells)} |"
    for one, other in AGAINST:
        both = sorted(set(by_arm.get(one, {})) & set(by_arm.get(other, {})))
        if both:
            logs = [math.log(by_arm[one][k] / by_arm[other][k]) for k in both]
            mean, low, high = interval(logs)
            ahead = sum(value > 0 for value in logs)
            yield ""
            yield (
                f"{one} over {other}, {len(both)} kernels: {mean:.2f}x [{low:.2f}, {high:.2f}], "
                f"ahead on {ahead}."
            )


def _tokens(rows: Sequence[Row], text: str) -> str:
    """Tokens of all prompts or replies; of steps whose tokens were not counted, the characters."""
    steps = [s for r in rows for s in r["steps"]]
    tokens = [s[f"{text}_tokens"] for s in steps if s.get(f"{text}_tokens") is not None]
    characters = [s[f"{text}_characters"] for s in steps if s.get(f"{text}_tokens") is None]
    found = [str(sum(tokens))] if tokens or not characters else []
    return " and ".join([*found, *([f"{sum(characters)} characters"] if characters else [])])


def _replies(rows: Sequence[Row]) -> Iterator[str]:
    """How many first replies compiled, were right, were faster."""
    for arm in ORDER[2:]:
        mine = [r for r in rows if r["arm"] == arm]
        firsts = [r["first_trials"][0]["first"] for r in mine if r["first_trials"]]
        outcomes = [f for f in firsts if f is not None]
        compiled = sum(o["kind"] != "rejected" or o["stage"] != "compile" for o in outcomes)
        right = sum(o["kind"] in ("measured", "cut_short") for o in outcomes)
        best = [_best_written(r) for r in mine]
        faster = sum(b is not None and b < 1 for b in best)
        asked = len(mine)
        if asked:
            yield (
                f"First replies, `{arm}`: {len(firsts)} of {asked} were source; with their first "
                f"configuration {compiled} compiled and {right} were right; {faster} had a faster one."
            )


def _best_written(row: Row) -> float | None:
    written = [c["best"] for c in row["candidates"] if c["written"] and c["best"] is not None]
    return min(written, default=None)


def _kernels(rows: Sequence[Row]) -> Iterator[str]:
    yield from _header(KERNELS)
    for row in sorted(rows, key=lambda r: (r["kernel"], r["seed"], ORDER.index(r["arm"]))):
        stages = " / ".join(f"{row['stages_s'].get(s, 0):g}" for s in DEVICE_STAGES)
        end = (row["reason"] or {}).get("sentence") or row["detail"]
        cells = (
            *(row["kernel"], str(row["seed"]), row["arm"], f"{row['speedup']:.2f}"),
            *(f"{row['trials']} ({row['rejected']})", _served(row), stages, _cell(end)),
        )
        yield f"| {' | '.join(cells)} |"


def _served(row: Row) -> str:
    """Whose templates serve workloads."""
    written = {c["id"] for c in row["candidates"] if c["written"]}
    serving = [d["candidate"] for d in row["dispatch"] if d["candidate"]]
    names = {"model" if c in written else "rules" for c in serving}
    return " and ".join(sorted(names)) or "-"


def _workloads(rows: Sequence[Row]) -> Iterator[str]:
    yield from _header(WORKLOADS)
    for row in sorted(rows, key=lambda r: (r["kernel"], r["seed"], ORDER.index(r["arm"]))):
        compared = {c["workload"]: c for c in row["comparisons"]}
        for workload in row["workloads"]:
            found = compared.get(workload["key"])
            named = f"{workload['key']} ({workload['weight']:g})"
            cells = (row["kernel"], str(row["seed"]), row["arm"], named, *_measured(found))
            yield f"| {' | '.join(cells)} |"


def _measured(found: Row | None) -> tuple[str, str, str]:
    if found is None:
        return "-", "1.00, kept", "-"
    gain, share = found["speedup"], found["floor_share"]
    words = f"{gain['estimate']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}] {found['verdict']}"
    times = f"{found['baseline_us']:.2f} → {found['best_us']:.2f}"
    return times, words, "-" if share is None else f"{share:.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")[:160]


def _header(names: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
