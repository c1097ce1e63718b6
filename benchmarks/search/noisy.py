"""Near-ties at the end of a search, on recorded spaces whose times are made noisy.

`python -m benchmarks.search.noisy --spaces FOLDER`: writes noisy.json and noisy.md. Every evaluation sees
the recorded time with its own log-normal error. Compared at the same number of measurements: the
lowest time ever seen, and a search that ends earlier and spends the rest on its near-ties.
"""

import argparse
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.compare import in_processes
from benchmarks.search.spaces import RecordedSpace, load_all
from warpsmith.domain.job import SearcherName
from warpsmith.search.factory import make_searcher
from warpsmith.tuning.winners.retime_near_ties import TIMINGS, retime_near_ties

NOISES = (0.01, 0.03, 0.05)
"""Standard deviations of log time. A quiet GPU is below the first, a shared host near the last."""
BUDGETS = (50, 100, 200)
SHARES = (0.0, 0.02, 0.05, 0.1)
"""Of the budget, what the near-ties get."""
COSTS = (1.0, 0.2, 0.0)
"""Of timing a configuration again, in evaluations: as dear as a new one; without the compiling and checking
that a new one needs, which take longer than its timing; nothing, as the job does it: in the time that is
kept for the verification anyhow, where there are `TIMINGS` of them."""

Pair = tuple[float | None, float | None]
"""What was seen, and the recorded time; None where the configuration fails."""


@dataclass(frozen=True)
class Task:
    """All seeds of a space at one level of noise."""

    folder: str
    space: str
    noise: float
    seeds: tuple[int, ...]


_SPACES: dict[str, RecordedSpace] = {}


def search(space: RecordedSpace, seed: int, budget: int, noise: float) -> list[Pair]:
    """A search that sees noisy times."""
    rng = np.random.default_rng((seed, round(noise * 1e6)))
    searcher = make_searcher(SearcherName.DEFAULT, space.feasible, seed, launched=space.launched)
    trace: list[Pair] = []
    while len(trace) < budget:
        asked = searcher.ask(1)
        if not asked:
            break
        known = space.knows(asked[0])
        true = space.time(asked[0]) if known else None
        seen = None if true is None else true * math.exp(rng.normal(0.0, noise))
        if known:
            trace.append((seen, true))
        searcher.tell(asked[0], seen)
    return trace


def chosen(
    trace: Sequence[Pair], budget: int, noise: float, share: float, cost: float, rng: np.random.Generator
) -> float:
    """The recorded time of what is chosen when `share` of the budget goes to near-ties."""
    spare = round(share * budget) if cost else 0
    timings = round(spare / cost) if cost else TIMINGS * (share > 0)
    found = [(seen, true) for seen, true in trace[: budget - spare] if seen is not None and true is not None]
    found.sort()
    if not found:
        return math.inf
    if not timings:
        return found[0][1]
    order = retime_near_ties(
        [seen for seen, _ in found],
        noise,
        lambda i: found[i][1] * math.exp(rng.normal(0.0, noise)),
        timings,
    )
    return found[order[0]][1]


def work(task: Task) -> tuple[Task, list[list[Pair]], float]:
    """Every seed's trace."""
    if not _SPACES:
        _SPACES.update({s.name: s for s in load_all(Path(task.folder))})
    space = _SPACES[task.space]
    return task, [search(space, s, max(BUDGETS), task.noise) for s in task.seeds], space.best


def table(
    traces: Mapping[tuple[str, float], tuple[list[list[Pair]], float]], repeats: int
) -> list[dict[str, Any]]:
    """By noise, budget, cost and share: regret, and how much less it is than without a play-off."""
    rows = []
    for noise, budget, cost in itertools.product(NOISES, BUDGETS, COSTS):
        runs = [(trace, best) for (_, of), (found, best) in traces.items() if of == noise for trace in found]
        plain = np.array([_regret(*run, budget, noise, 0.0, cost, 1) for run in runs])
        for share in SHARES if cost else SHARES[:2]:
            regrets = np.array([_regret(*run, budget, noise, share, cost, repeats) for run in runs])
            rows.append(
                {
                    "noise": noise,
                    "budget": budget,
                    "cost": cost,
                    "share": share,
                    "mean_regret": float(regrets.mean()),
                    "median_regret": float(np.median(regrets)),
                    "gain": float((plain - regrets).mean()),
                    "gain_interval": _interval(plain - regrets),
                    "runs": len(runs),
                }
            )
    return rows


def _regret(
    trace: Sequence[Pair], best: float, budget: int, noise: float, share: float, cost: float, repeats: int
) -> float:
    rng = np.random.default_rng((len(trace), budget, round(1000 * share), round(1e9 * (trace[0][1] or 0))))
    times = [chosen(trace, budget, noise, share, cost, rng) for _ in range(repeats)]
    return float(np.mean(times)) / best - 1


def _interval(values: "np.ndarray[Any, np.dtype[np.float64]]") -> tuple[float, float]:
    picks = np.random.default_rng(0).integers(0, values.size, (2000, values.size))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def markdown(record: dict[str, Any]) -> list[str]:
    """The record as a table."""
    lines = [
        "# Search: near-ties measured again, at equal budgets",
        "",
        f"{record['seeds']} seeds, {len(record['spaces'])} spaces. Regret: recorded time of the chosen"
        " configuration over the optimum, less 1. Gain: less regret than without a play-off, paired by run.",
        "",
        "A timing costs 1: as much as a new configuration; 0.2: that is also compiled and checked; 0: it is"
        f" done in the verification's own time, {TIMINGS} timings at most, as jobs do it.",
        "",
        "| noise | budget | a timing costs | of the budget for near-ties | mean regret | median "
        "| gain, points (95 %) |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in record["rows"]:
        low, high = (100 * x for x in r["gain_interval"])
        if r["share"] == 0 and r["cost"] != COSTS[0]:
            continue
        gain = "" if r["share"] == 0 else f"{100 * r['gain']:.2f} ({low:.2f} to {high:.2f})"
        share = f"{100 * r['share']:.0f} %" if r["cost"] else "beside it"
        lines.append(
            f"| {100 * r['noise']:g} % | {r['budget']} | {r['cost']:g} | {share} "
            f"| {100 * r['mean_regret']:.2f} % | {100 * r['median_regret']:.2f} % | {gain} |"
        )
    return lines


def main() -> None:
    """Search every space at every level of noise and write the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.noisy", description=__doc__)
    parser.add_argument("--spaces", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    spaces = [s for s in load_all(options.spaces) if s.restrictions]
    seeds = tuple(range(options.seeds))
    tasks = [Task(str(options.spaces), s.name, noise, seeds) for s in spaces for noise in NOISES]
    traces = {}
    for task, runs, best in in_processes(work, tasks, options.processes):
        traces[(task.space, task.noise)] = (runs, best)
        print(task.space, task.noise, flush=True)
    record = {"seeds": options.seeds, "spaces": [s.name for s in spaces], "rows": table(traces, repeats=5)}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "noisy.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "noisy.md").write_text("\n".join(markdown(record)) + "\n")
    print("\n".join(markdown(record)))


if __name__ == "__main__":
    main()
