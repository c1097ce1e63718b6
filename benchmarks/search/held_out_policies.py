"""Ways to serve shapes that no workload names, judged on times that they have not seen."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.report.shape_lookup import Shape, boxes, least_speedup, server_of

CLAIM = 1.02
"""A workload leaves the baseline where its best was so much faster; a real job also verifies it."""
FEW = 6
"""Workloads of a job in the second way to split."""
DRAWS = 30
"""Jobs of that kind, per family."""

HEAD = (
    "| served by | held out | not by the baseline | slower than it | by two deviations of the noise "
    "| worst | speed-up | of the log of the best's |",
    "|---|---|---|---|---|---|---|---|",
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """A family's times on one device; configuration 0 is the user's kernel."""

    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Family and device."""
        return f"{self.data['family']} on {self.data['device']}"

    @cached_property
    def shapes(self) -> list[Shape]:
        """Values of the dimensions, sorted by name."""
        return [tuple(s[n] for n in sorted(s)) for s in self.data["shapes"]]

    def speedups(self, turn: int) -> Floats:
        """[configurations, shapes]: baseline time over theirs in one pass; 0 where one cannot run."""
        times = np.array(self.data["times_us"][turn], dtype=np.float64)
        return np.nan_to_num(times[0] / times, nan=0.0)

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the log of a speed-up, from the difference of the two passes."""
        one, two = self.speedups(0)[1:], self.speedups(1)[1:]
        both = (one > 0) & (two > 0)
        spread = np.log(one[both] / two[both])
        return float(1.4826 * np.median(np.abs(spread - np.median(spread))) / math.sqrt(2))


@dataclass(frozen=True)
class Table:
    """What a job knows: its workloads, what serves each, and how that did on the others."""

    shapes: Sequence[Shape]
    choices: Sequence[int]
    """By workload, a configuration's number; 0: the baseline."""
    seen: Floats
    """[configurations, workloads]"""
    noise: float = 0.0
    """In the place of the device's A/A width."""

    @property
    def servers(self) -> list[int]:
        """Different configurations of the table."""
        return sorted(set(self.choices) - {0})


Policy = Callable[[Table, Shape], int]


def baseline(_table: Table, _shape: Shape) -> int:
    """Never leaves it."""
    return 0


def nearest(table: Table, shape: Shape) -> int:
    """What serves the nearest workload, by logarithms."""
    logs = np.log(np.array(table.shapes, dtype=np.float64))
    return table.choices[int(np.argmin(((logs - np.log(shape)) ** 2).sum(axis=1)))]


def look_up(
    least: float | None = None,
    step: float | None = None,
    aligned: int | None = None,
    unknown_corner: float | None = None,
) -> Policy:
    """Ours; with other constants where they are given."""
    constants = {"step": step, "aligned": aligned, "unknown_corner": unknown_corner}
    given = {k: v for k, v in constants.items() if v is not None}

    def policy(table: Table, shape: Shape) -> int:
        servers = table.servers
        floor = least or least_speedup(table.noise)
        found = boxes(table.shapes, [list(table.seen[s]) for s in servers], floor, **given)  # type: ignore[arg-type]
        number = server_of(shape, found)
        return 0 if number is None else servers[number]

    return policy


POLICIES: Mapping[str, Policy] = {
    "always the baseline": baseline,
    "nearest workload": nearest,
    "look-up": look_up(),
    "look-up, least speed-up 1.02": look_up(least=1.02),
    "look-up, least speed-up 1.05": look_up(least=1.05),
    "look-up, any corners": look_up(unknown_corner=1.0),
    "look-up, any corners, least speed-up 1.20": look_up(least=1.20, unknown_corner=1.0),
    "look-up, 1.20 where a corner is unknown": look_up(unknown_corner=1.20),
    "look-up, 1.35 where a corner is unknown": look_up(unknown_corner=1.35),
    "look-up, 2.00 where a corner is unknown": look_up(unknown_corner=2.0),
    "look-up, never where a corner is unknown": look_up(unknown_corner=math.inf),
    "look-up, neighbours any distance apart": look_up(step=math.inf),
    "look-up, neighbours at most 2x apart": look_up(step=2.0),
    "look-up, divisibility ignored": look_up(aligned=1),
    "look-up, divisibility up to 4": look_up(aligned=4),
    "look-up, divisibility up to 128": look_up(aligned=128),
}
BEST = "best of all configurations"


def splits(count: int) -> dict[str, list[list[int]]]:
    """By way of splitting: the workloads of each job; the other shapes are held out."""
    rng = random.Random(0)
    return {
        "all but one shape known": [[i for i in range(count) if i != left] for left in range(count)],
        f"{FEW} shapes known": [sorted(rng.sample(range(count), FEW)) for _ in range(DRAWS)],
    }


def judged(records: Sequence[Recorded], policies: Mapping[str, Policy]) -> dict[str, Any]:
    """By way of splitting, family and policy: shapes slower than the baseline, and the speed-up kept."""
    out: dict[str, Any] = {"families": {r.name: {"noise": r.noise} for r in records}, "splits": {}}
    for record in records:
        seen, truth = record.speedups(0), record.speedups(1)
        for way, jobs in splits(len(record.shapes)).items():
            got: dict[str, list[float]] = {name: [] for name in [*policies, BEST]}
            left: dict[str, int] = dict.fromkeys(policies, 0)
            for known in jobs:
                table = _table(record, seen, known)
                for held in set(range(len(record.shapes))) - set(known):
                    for name, policy in policies.items():
                        number = policy(table, record.shapes[held])
                        # What a constraint or a limit forbids on this shape was not timed.
                        number = number if seen[number, held] > 0 else 0
                        left[name] += number != 0
                        got[name].append(float(truth[number, held]) if number else 1.0)
                    got[BEST].append(float(truth[int(np.argmax(seen[:, held])), held]))
            out["splits"].setdefault(way, {})[record.name] = {
                name: _figures(values, left.get(name, 0), record.noise) for name, values in got.items()
            }
    return out


def _table(record: Recorded, seen: Floats, known: Sequence[int]) -> Table:
    best = np.argmax(seen[:, known], axis=0)
    choices = [int(b) if seen[b, k] > CLAIM else 0 for b, k in zip(best, known, strict=True)]
    return Table([record.shapes[k] for k in known], choices, seen[:, known], record.noise)


def _figures(values: Sequence[float], left: int, noise: float) -> dict[str, float]:
    got = np.array(values)
    return {
        "held_out": got.size,
        "tuned": left,
        "slower": int((got < 1).sum()),
        "slower_beyond_noise": int((got < math.exp(-2 * noise)).sum()),
        "worst": float(got.min()),
        "log_speedup": float(np.log(np.maximum(got, 1e-9)).sum()),
    }


def markdown(judgement: Mapping[str, Any]) -> list[str]:
    """The judgement as tables: all families together, then ours by family."""
    lines = ["# Shapes that no workload names", ""]
    families = "; ".join(f"{n} ({100 * f['noise']:.1f} %)" for n, f in judgement["families"].items())
    lines += [
        "Dispatch tables come from the first times of the known shapes; how the others fare is judged by"
        " second times. `best of all configurations` is chosen by the first times of the very shape: what is"
        " slower there is so by noise or by luck. The last column says how much of the logarithm of its"
        " speed-up is kept. The look-up asks for twice the noise at least, as a job does; the rows below it"
        " have one thing changed.",
        "",
        f"Families, and the noise of one speed-up: {families}.",
        "",
    ]
    for way, by_family in judgement["splits"].items():
        lines += [f"## {way[0].upper()}{way[1:]}", ""]
        lines += HEAD
        names = list(next(iter(by_family.values())))
        total = {n: _sum([f[n] for f in by_family.values()]) for n in names}
        for name in names:
            lines.append(_row(name, total[name], total[BEST]))
        lines += ["", "The look-up by family:", "", *HEAD]
        for family, figures in by_family.items():
            lines.append(_row(family, figures["look-up"], figures[BEST]))
        lines.append("")
    return lines[:-1]


def _sum(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total = {key: sum(f[key] for f in figures) for key in figures[0]}
    return total | {"worst": min(f["worst"] for f in figures)}


def _row(name: str, figures: Mapping[str, float], best: Mapping[str, float]) -> str:
    held = figures["held_out"]
    kept = figures["log_speedup"] / best["log_speedup"] if best["log_speedup"] else 0.0
    slower, surely = figures["slower"], figures["slower_beyond_noise"]
    return (
        f"| {name} | {held} | {100 * figures['tuned'] / held:.0f} % "
        f"| {slower}, {100 * slower / held:.2f} % | {surely}, {100 * surely / held:.2f} % "
        f"| {figures['worst']:.2f} | {math.exp(figures['log_speedup'] / held):.3f} | {100 * kept:.0f} % |"
    )
