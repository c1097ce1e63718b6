"""What ending hopeless trials early saves, and what it costs, on recordings with a time for every workload.

`python -m benchmarks.search.partial --spaces FOLDER`: writes partial.json and partial.md. The same searches,
with `warpsmith.tuning.trials.pruner` and without. A trial costs a fixed time of the device and one for every
workload that it runs on. Compared are the device time, the best objective and the mean over workloads of
each one's own best, in logarithms; beside them, what a plain search loses that simply ends earlier.
"""

import argparse
import gzip
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.spaces import RecordedSpace, load
from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration, configuration_key
from warpsmith.search.factory import make_searcher
from warpsmith.tuning.trials.pruner import Pruner

SEEDS = 40
ENDS = (0.9, 0.8)
"""Shares of a plain search after which it ends, for comparison."""

WORDS = """{} paired seeds; means over the spaces, 95 % intervals. `objective` and `own bests`: relative to
the same search with every trial on all workloads, above 0 is worse. `cut`: share of trials that ended early;
`missed`: how many of them would have been the best so far of a workload or over all; `estimates`: least and
largest mean of a space, relative to what would have been measured; `by space`: device time saved."""


@dataclass(frozen=True)
class Condition:
    """How a search runs, and what a trial costs in milliseconds of device time."""

    name: str
    trials: int = 100
    least_gain: float = 0.001
    """0: the search does not end by itself."""
    fixed_ms: float = 5.0
    workload_ms: float = 10.0
    by_size: bool = False
    """A larger workload costs more: half of `workload_ms`, and twice as much in proportion to its time."""
    noise: float = 0.0
    """Standard deviation of log time."""


CONDITIONS = (
    Condition("as it is: 5 ms + 10 ms a workload"),
    Condition("50 trials, not ended by itself", trials=50, least_gain=0.0),
    Condition("100 trials, not ended by itself", least_gain=0.0),
    Condition("15 ms + 10 ms a workload", fixed_ms=15.0),
    Condition("larger workloads cost more", by_size=True),
    Condition("2 % noise", noise=0.02),
    Condition("10 % noise, least gain 0.3 %", noise=0.1, least_gain=0.003),
)


@dataclass(frozen=True)
class Recording:
    """A space with the time of every workload."""

    space: RecordedSpace
    baseline_us: Mapping[str, float]
    times_us: Mapping[str, Mapping[str, float]]
    """By configuration key, then by workload; a workload that the constraints forbid is missing."""


@dataclass
class Run:
    """One search."""

    spent_ms: list[float] = field(default_factory=list)
    """After every trial."""
    objective: list[float] = field(default_factory=list)
    """Recorded logarithm of the best so far, by what was seen."""
    own_best: list[float] = field(default_factory=list)
    """Mean over workloads of the logarithm of each one's own best."""
    cut: list[float] = field(default_factory=list)
    """Of trials that ended early: logarithm of the estimate over what would have been measured."""
    went_on: list[float] = field(default_factory=list)
    """The same of those that went on by chance."""
    missed: int = 0
    """Trials that ended early and would have been the best so far of a workload or over all."""

    def up_to(self, share: float) -> "Run":
        """The search, had it ended then."""
        count = max(1, round(share * len(self.spent_ms)))
        return Run(self.spent_ms[:count], self.objective[:count], self.own_best[:count])


def read(path: Path) -> Recording | None:
    """A recording; None where it has one workload only."""
    with gzip.open(path) as stream:
        data = json.load(stream)
    entries = list(data["cache"].values())
    names = (data.get("made") or {}).get("workloads") or ()
    if len(names) < 2 or any("workloads_us" not in e for e in entries):
        return None
    of = {configuration_key({n: e[n] for n in data["tune_params"]}): e for e in entries}
    first = {n: next(e["workloads_us"][n] for e in entries if n in e["workloads_us"]) for n in names}
    # What a baseline was is not recorded, but what it makes of the objective is.
    entry = next(e for e in entries if len(e["workloads_us"]) == len(names))
    logs = sum(math.log(entry["workloads_us"][n] / first[n]) for n in names) / len(names)
    scale = math.exp(logs) / entry["time"]
    baseline_us = {n: us * scale for n, us in first.items()}
    return Recording(load(path), baseline_us, {key: e["workloads_us"] for key, e in of.items()})


def search(of: Recording, condition: Condition, seed: int, partial: bool) -> Run:
    """One search of a recorded space."""
    rng, chance = np.random.default_rng((seed, 7)), random.Random(seed)
    pruner = Pruner(dict.fromkeys(of.baseline_us, 1.0), of.baseline_us, draw=chance.random)
    ask = make_searcher(SearcherName.DEFAULT, of.space.feasible, seed, least_gain=condition.least_gain)
    run, best = Run(), _Best(of)
    while len(run.spent_ms) < condition.trials:
        asked: Sequence[Configuration] = ask.ask(1)
        if not asked:
            break
        true_us = of.times_us.get(configuration_key(asked[0]))
        if true_us is None:
            ask.tell(asked[0], None)
            continue
        seen_us = {k: us * math.exp(rng.normal(0.0, condition.noise)) for k, us in true_us.items()}
        objective = best.objective(seen_us)
        timed, estimate = _trial(pruner, seen_us) if partial else (list(seen_us), None)
        before = run.spent_ms[-1] if run.spent_ms else 0.0
        run.spent_ms.append(before + condition.fixed_ms + sum(_cost(of, condition, k) for k in timed))
        error = 0.0 if estimate is None else math.log(estimate) - objective
        if len(timed) < len(seen_us):
            assert estimate is not None
            ask.tell(asked[0], estimate)
            run.cut.append(error)
            run.missed += best.would_improve(seen_us)
        else:
            ask.tell(asked[0], math.exp(objective))
            pruner.learn(seen_us)
            best.note(seen_us, true_us)
            if estimate is not None:
                run.went_on.append(error)
        run.objective.append(best.true)
        run.own_best.append(best.own())
    return run


def _trial(pruner: Pruner, seen_us: Mapping[str, float]) -> tuple[list[str], float | None]:
    """Workloads that a trial runs on, and the estimate where it looked hopeless."""
    order = pruner.order(list(seen_us))
    estimate: float | None = None
    for place in range(1, len(order)):
        found = pruner.estimate_if_hopeless({k: seen_us[k] for k in order[:place]}, order[place:])
        if found is not None:
            estimate = found.objective
            return (order if found.goes_on else order[:place]), estimate
    return order, estimate


def _cost(of: Recording, condition: Condition, key: str) -> float:
    if not condition.by_size:
        return condition.workload_ms
    mean = sum(of.baseline_us.values()) / len(of.baseline_us)
    return condition.workload_ms * (0.5 + 2.0 * of.baseline_us[key] / mean)


class _Best:
    """The best by what was seen, in recorded times."""

    def __init__(self, of: Recording) -> None:
        self._of = of
        self._seen, self.true = math.inf, math.inf
        self._by_workload: dict[str, tuple[float, float]] = {}

    def objective(self, times_us: Mapping[str, float]) -> float:
        baseline_us = self._of.baseline_us
        return sum(math.log(us / baseline_us[k]) for k, us in times_us.items()) / len(baseline_us)

    def would_improve(self, seen_us: Mapping[str, float]) -> bool:
        own = any(us < self._by_workload.get(k, (math.inf, 0.0))[0] for k, us in seen_us.items())
        return own or self.objective(seen_us) < self._seen

    def note(self, seen_us: Mapping[str, float], true_us: Mapping[str, float]) -> None:
        seen, true = self.objective(seen_us), self.objective(true_us)
        if seen < self._seen:
            self._seen, self.true = seen, true
        for key, us in seen_us.items():
            if us < self._by_workload.get(key, (math.inf, 0.0))[0]:
                self._by_workload[key] = (us, true_us[key])

    def own(self) -> float:
        known = {k: true for k, (_, true) in self._by_workload.items()}
        return self.objective(known)


def compared(plain: Sequence[Run], other: Sequence[Run]) -> dict[str, Any]:
    """What other runs of the same seeds saved and lost."""
    saved = 1.0 - sum(r.spent_ms[-1] for r in other) / sum(r.spent_ms[-1] for r in plain)
    loss = {
        name: [value(b) - value(a) for a, b in zip(plain, other, strict=True)]
        for name, value in (("objective", _objective), ("own_best", _own_best))
    }
    out: dict[str, Any] = {"saved": saved}
    for name, values in loss.items():
        out[name] = {"mean": float(np.mean(values)), "variance": float(np.var(values, ddof=1) / len(values))}
    cut, went_on = [e for r in other for e in r.cut], [e for r in other for e in r.went_on]
    trials = sum(len(r.spent_ms) for r in other)
    out |= {"trials": trials, "trials_plain": sum(len(r.spent_ms) for r in plain), "cut": len(cut)}
    out |= {"missed": sum(r.missed for r in other), "went_on": len(went_on)}
    for name, errors in (("cut", cut), ("went_on", went_on)):
        out[f"{name}_error"] = [float(np.mean(errors)), float(np.median(errors))] if errors else None
    return out


def _objective(run: Run) -> float:
    return run.objective[-1]


def _own_best(run: Run) -> float:
    return run.own_best[-1]


def row(name: str, by_space: Mapping[str, Mapping[str, Any]]) -> str:
    """Means over spaces, as a line of a table."""
    rows = list(by_space.values())
    words = [f"{np.mean([r['saved'] for r in rows]):.0%}"]
    for of in ("objective", "own_best"):
        mean = np.mean([r[of]["mean"] for r in rows])
        half = 1.96 * math.sqrt(sum(r[of]["variance"] for r in rows)) / len(rows)
        words.append(f"{mean:+.2%} ± {half:.2%}")
    cut = sum(r["cut"] for r in rows) / sum(r["trials"] for r in rows)
    words += [f"{cut:.0%}", str(sum(r["missed"] for r in rows))]
    errors = [r["cut_error"][0] for r in rows if r["cut_error"]]
    words.append(f"{min(errors):+.0%} to {max(errors):+.0%}" if errors else "")
    each = ", ".join(f"{n} {r['saved']:.0%}" for n, r in by_space.items())
    return f"| {name} | {' | '.join(words)} | {each} |"


def main() -> None:
    """Run everything and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spaces", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search"))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    found = {p.name.split("-")[0]: read(p) for p in sorted(asked.spaces.glob("*.json.gz"))}
    known = {name: of for name, of in found.items() if of is not None}
    note: Callable[[str], None] = lambda text: print(text, flush=True)  # noqa: E731
    lines = ["| search | device time saved | objective | own bests | cut | missed | estimates | by space |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    record: dict[str, Any] = {}
    for condition in CONDITIONS:
        plain = {n: [search(of, condition, s, False) for s in range(asked.seeds)] for n, of in known.items()}
        other = {n: [search(of, condition, s, True) for s in range(asked.seeds)] for n, of in known.items()}
        figures = {condition.name: {n: compared(plain[n], other[n]) for n in known}}
        if condition is CONDITIONS[0] or condition is CONDITIONS[1]:
            for share in ENDS:
                name = f"{condition.name}; plain, ended at {share:.0%}"
                figures[name] = {n: compared(plain[n], [r.up_to(share) for r in plain[n]]) for n in known}
        for name, by_space in figures.items():
            lines.append(row(name, by_space))
            note(lines[-1])
        record |= figures
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "partial.json").write_text(json.dumps(record, indent=1))
    (asked.out / "partial.md").write_text("\n".join([WORDS.format(asked.seeds), "", *lines, ""]))


if __name__ == "__main__":
    main()
