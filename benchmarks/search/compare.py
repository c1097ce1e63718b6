"""Ours against the peers on recorded spaces: paired seeds, equal budgets."""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.metrics import BUDGETS, best_so_far, summary
from benchmarks.search.peers import STRATEGIES, OptunaTpe, kernel_tuner
from benchmarks.search.prior import RECORD
from benchmarks.search.prior import read as read_prior
from benchmarks.search.replay import Trace, run
from benchmarks.search.spaces import RecordedSpace, load_all
from warpsmith.domain.jobs.job import SearcherName
from warpsmith.search.factory import Hints, make_searcher
from warpsmith.search.searchers.portfolio import PortfolioSearcher

OURS, RANDOM, TPE = "warpsmith", "random", "Optuna TPE"
LEFT_OUT = "warpsmith, prior without this kernel"
"""Ours, with a prior from the recordings of the other kernels only."""
KERNEL_TUNER = {s: f"Kernel Tuner {s}" for s in STRATEGIES}
METHODS = (OURS, LEFT_OUT, RANDOM, TPE, *KERNEL_TUNER.values())
BUDGET = max(BUDGETS)
BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Task:
    """Work for one process: one method and space, some seeds."""

    folder: str
    space: str
    method: str
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """One search of one space."""

    method: str
    space: str
    seed: int
    trace: Trace
    seconds: float
    """Of the searcher, per evaluation."""


_SPACES: dict[str, RecordedSpace] = {}


def work(task: Task) -> list[Run]:
    """All runs of a task."""
    if not _SPACES:
        _SPACES.update({s.name: s for s in load_all(Path(task.folder))})
    space = _SPACES[task.space]
    if task.method == "Kernel Tuner":
        return [
            Run(KERNEL_TUNER[strategy], space.name, seed, trace, seconds)
            for strategy, seed, trace, seconds, _ in kernel_tuner(space, STRATEGIES, len(task.seeds), BUDGET)
        ]
    out = []
    for seed in task.seeds:
        if task.method == TPE:
            trace, seconds = run(OptunaTpe(space.feasible, seed), space, BUDGET)
        elif task.method == LEFT_OUT:
            prior = read_prior(RECORD, space.kernel)
            trace, seconds = run(
                PortfolioSearcher(space.feasible, seed, prior, space.launched), space, BUDGET
            )
        else:
            name = SearcherName.DEFAULT if task.method == OURS else SearcherName.RANDOM
            searcher = make_searcher(name, space.feasible, seed, hints=Hints(launched=space.launched))
            trace, seconds = run(searcher, space, BUDGET)
        out.append(Run(task.method, space.name, seed, trace, seconds))
    return out


def in_processes(function: Any, tasks: Sequence[Any], processes: int) -> Iterator[Any]:
    """Results as they come, each process on one core: BLAS of its own would fight over the others."""
    for name in BLAS:
        os.environ[name] = "1"
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, tasks)


def compare(
    folder: Path, spaces: Sequence[RecordedSpace], seeds: int, methods: Sequence[str], processes: int = 2
) -> list[Run]:
    """Every method on every space, `seeds` times."""
    tasks = []
    if set(methods) & set(KERNEL_TUNER.values()):
        tasks += [Task(str(folder), s.name, "Kernel Tuner", tuple(range(seeds))) for s in spaces]
    tasks += [
        Task(str(folder), s.name, method, tuple(range(first, min(first + 5, seeds))))
        for method in (OURS, LEFT_OUT, TPE, RANDOM)
        if method in methods
        for s in spaces
        for first in range(0, seeds, 5)
    ]
    runs: list[Run] = []
    for done, part in enumerate(in_processes(work, tasks, processes), 1):
        runs += part
        print(f"{done}/{len(tasks)} {part[0].method} on {part[0].space}", flush=True)
    return runs


def save(runs: Sequence[Run], folder: Path) -> None:
    """Keep runs, one file a method, so that what has not changed need not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    for method in {r.method for r in runs}:
        with gzip.open(folder / f"{method}.json.gz", "wt") as stream:
            json.dump([asdict(r) for r in runs if r.method == method], stream)


def read(folder: Path, method: str) -> list[Run]:
    """Runs kept before; none where there is no file."""
    path = folder / f"{method}.json.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as stream:
        return [Run(**r) for r in json.load(stream)]


def figures(spaces: Sequence[RecordedSpace], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """By method: the summary, the cost, and the score's difference to ours with its interval."""
    out: dict[str, dict[str, Any]] = {}
    methods = [m for m in METHODS if any(r.method == m for r in runs)]
    for method in methods:
        mine = sorted((r for r in runs if r.method == method), key=lambda r: r.seed)
        traces = {s.name: [r.trace for r in mine if r.space == s.name] for s in spaces}
        costs = [r.seconds * 1e3 for r in mine if r.space in traces]
        out[method] = summary(spaces, traces) | {
            "ms_per_evaluation": float(np.mean(costs)),
            "curve": convergence(spaces, traces),
        }
    for method in methods[1:]:
        out[method]["ours_minus_this"] = paired_difference(
            {s.name: out[OURS]["by_space"][s.name]["scores"] for s in spaces},
            {s.name: out[method]["by_space"][s.name]["scores"] for s in spaces},
        )
    return out


def convergence(spaces: Sequence[RecordedSpace], traces: dict[str, list[Trace]]) -> list[float]:
    """Geometric mean over spaces of the median ratio after 1..BUDGET evaluations."""
    medians = []
    for space in spaces:
        worst = float(space.sorted_times[np.isfinite(space.sorted_times)][-1])
        runs = np.array([np.minimum(best_so_far(t, BUDGET), worst) for t in traces[space.name]])
        medians.append(np.median(runs, axis=0) / space.best)
    return [float(v) for v in np.exp(np.mean(np.log(medians), axis=0))]


def paired_difference(
    ours: dict[str, list[float]], theirs: dict[str, list[float]], draws: int = 4000
) -> dict[str, float]:
    """Mean difference of the score over paired seeds, and its 95 % bootstrap interval.

    Seeds are drawn anew inside every space, so that the spaces keep their weight.
    """
    rng = np.random.default_rng(0)
    means = np.zeros(draws)
    for name, scores in ours.items():
        difference = np.array(scores) - np.array(theirs[name])
        means += difference[rng.integers(0, difference.size, (draws, difference.size))].mean(axis=1)
    means /= len(ours)
    centre = float(np.mean([np.mean(np.array(ours[n]) - np.array(theirs[n])) for n in ours]))
    low, high = (float(v) for v in np.quantile(means, [0.025, 0.975]))
    return {"mean": centre, "low": low, "high": high}
