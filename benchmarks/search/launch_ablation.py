"""What the default searcher gains from what it expects: sizes of the launch, blocks, powers of two.

`python -m benchmarks.search.launch_ablation --spaces FOLDER [FOLDER ...]`: writes launch.json and
launch.md. The expectation is also fitted to the other families of kernels in the first folder, so that
nothing of the searched kernel, on whatever device, is in it.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.search.compare import in_processes
from benchmarks.search.launches import WARP
from benchmarks.search.metrics import BUDGETS, best_so_far, score
from benchmarks.search.replay import run
from benchmarks.search.report import ratios, shares
from benchmarks.search.spaces import WITHIN, RecordedSpace, load_all
from warpsmith.search.launch_prior import THREADS, UNEVEN, Launched, uneven_values
from warpsmith.search.portfolio import WINSOR, PortfolioSearcher

Floats = NDArray[np.float64]

NOTHING, SIZES, FITTED, BLOCKS, DEFAULT = (
    "nothing of the launch",
    "its sizes as coordinates",
    "and an expectation fitted to other kernels",
    "and what the guide expects of blocks",
    "and of values that are no power of two: the default",
)
ROWS = (NOTHING, SIZES, FITTED, BLOCKS, DEFAULT)
BUDGET = 100
AT = tuple(b for b in BUDGETS if b <= BUDGET)
RIDGE = 0.01
SEEDS_A_TASK = 10


@dataclass(frozen=True)
class Task:
    """One row on one space."""

    folders: tuple[str, ...]
    folder: int
    space: str
    row: str
    seeds: tuple[int, ...]


_SPACES: list[dict[str, RecordedSpace]] = []


def family(kernel: str) -> str:
    """Recordings of one kernel by several tools, or of two versions of it, are one family."""
    return kernel.removeprefix("ktt_").removesuffix("_milo")


def basis(space: RecordedSpace) -> Floats:
    """Of every row, what the expectation is made of: [rows, n].

    Hats at `THREADS` over the logarithm of a block's threads; its idle lanes; values no power of two.
    """
    said = space.launched
    assert said is not None
    logs = said.sizes[0]
    threads = np.exp2(logs)
    hats = [np.interp(logs, THREADS, unit) for unit in np.eye(len(THREADS))]
    idle = 1.0 - threads / (WARP * np.ceil(threads / WARP))
    return np.column_stack([*hats, idle, uneven_values(space.feasible)])


def fitted(space: RecordedSpace) -> Floats:
    """Standardised log time by `basis`, least squares; nan where the space has nothing to say.

    What uneven values cost is fitted beside a trend of every parameter: where larger is better, most of the
    large values are uneven.
    """
    rows = range(len(space.feasible))
    configurations = [space.feasible.configuration(r) for r in rows]
    times = np.array([space.time(c) if space.knows(c) else None for c in configurations], float)
    ran = np.isfinite(times)
    logs = np.log(times[ran])
    logs = np.minimum(logs, np.quantile(logs, WINSOR))
    targets = (logs - logs.mean()) / logs.std()
    x = basis(space)[ran]
    found = np.append(_least_squares(x[:, :-1], targets), 0.0)
    beside = np.column_stack([x[:, -1], x[:, -2], *(t[ran] for t in trends(space))])
    found[-1] = _least_squares(beside, targets)[0]
    found[x.sum(axis=0) < 1] = np.nan
    return found


def trends(space: RecordedSpace) -> list[Floats]:
    """Of every row: the logarithm of every number, and its square where there are more than two; a one."""
    found = [np.ones(len(space.feasible))]
    for column, parameter in enumerate(space.space.parameters):
        if len(parameter.values) < 2 or any(isinstance(v, str) for v in parameter.values):
            continue
        logs = np.log2(np.abs(np.array(parameter.values, float)) + 1.0)
        logs = (logs - logs.mean()) / (logs.std() or 1.0)
        codes = space.feasible.codes[:, column]
        found += [logs[codes], logs[codes] ** 2][: 2 if len(parameter.values) > 2 else 1]
    return found


def _least_squares(x: Floats, targets: Floats) -> Floats:
    gram = x.T @ x / len(targets) + RIDGE * np.eye(x.shape[1])
    result: Floats = np.linalg.solve(gram, x.T @ targets / len(targets))
    return result


def expectation(space: RecordedSpace, known: Sequence[RecordedSpace]) -> Floats:
    """Of every row, by the median over the other families of their spaces' means."""
    by_family: dict[str, list[Floats]] = {}
    for other in known:
        if family(other.kernel) != family(space.kernel):
            by_family.setdefault(family(other.kernel), []).append(fitted(other))
    means = [np.ma.masked_invalid(f).mean(axis=0).filled(np.nan) for f in by_family.values()]
    if not means:
        return np.zeros(len(space.feasible))
    result: Floats = basis(space) @ np.ma.median(np.ma.masked_invalid(means), axis=0).filled(0.0)
    return result


def work(task: Task) -> tuple[Task, list[tuple[list[float], float]]]:
    """By seed: ratios to the optimum at `AT`, and the score up to `BUDGET`."""
    if not _SPACES:
        _SPACES.extend({s.name: s for s in load_all(Path(f))} for f in task.folders)
    space = _SPACES[task.folder][task.space]
    said: Launched | None = space.launched
    assert said is not None
    if task.row == NOTHING:
        said = None
    elif task.row == SIZES:
        said = replace(said, expected=np.zeros_like(said.expected))
    elif task.row == FITTED:
        said = replace(said, expected=expectation(space, list(_SPACES[0].values())))
    elif task.row == BLOCKS:
        said = replace(said, expected=said.expected - UNEVEN * uneven_values(space.feasible))
    out = []
    for seed in task.seeds:
        trace, _ = run(PortfolioSearcher(space.feasible, seed, launched=said), space, BUDGET)
        best = best_so_far(trace, max(BUDGETS))
        out.append(([float(best[b - 1]) / space.best for b in AT], score(space, best)))
    return task, out


def main() -> None:
    """Run every row on every folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.launch_ablation", description=__doc__)
    parser.add_argument("--spaces", type=Path, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", nargs="*", default=ROWS, help="these; the others stay as recorded in OUT")
    options = parser.parse_args()
    began = time.perf_counter()
    names = [[s.name for s in load_all(f) if s.restrictions and s.launched] for f in options.spaces]
    tasks = [
        Task(tuple(map(str, options.spaces)), folder, space, row, tuple(range(first, first + SEEDS_A_TASK)))
        for row in options.rows
        for folder, spaces in enumerate(names)
        for space in spaces
        for first in range(0, options.seeds, SEEDS_A_TASK)
    ]
    found: dict[tuple[int, str], dict[str, list[tuple[list[float], float]]]] = {}
    for task, runs in in_processes(work, tasks, options.processes):
        found.setdefault((task.folder, task.row), {}).setdefault(task.space, []).extend(runs)
    before = json.loads((options.out / "launch.json").read_text()) if options.rows != ROWS else None

    def figures_of(folder: int, row: str) -> dict[str, Any]:
        if before is not None and row not in options.rows:
            kept: dict[str, Any] = before["folders"][folder]["rows"][row]
            return kept
        return _figures(found[folder, row])

    record = {
        "seeds": options.seeds,
        "minutes": (time.perf_counter() - began) / 60,
        "folders": [
            {"spaces": spaces, "rows": {row: figures_of(folder, row) for row in ROWS}}
            for folder, spaces in enumerate(names)
        ],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "launch.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "launch.md").write_text("\n".join(markdown(record)) + "\n")
    print("\n".join(markdown(record)))


def _figures(by_space: dict[str, list[tuple[list[float], float]]]) -> dict[str, Any]:
    at = {name: np.array([ratio for ratio, _ in runs]) for name, runs in by_space.items()}
    return {
        "ratio": np.exp(np.mean([np.log(np.median(a, axis=0)) for a in at.values()], axis=0)).tolist(),
        "within": np.mean([(a <= WITHIN).mean(axis=0) for a in at.values()], axis=0).tolist(),
        "score": float(np.mean([np.mean([s for _, s in runs]) for runs in by_space.values()])),
        "within_by_space": {n: (a <= WITHIN).mean(axis=0).tolist() for n, a in at.items()},
    }


def markdown(record: dict[str, Any]) -> list[str]:
    """One table a folder."""
    lines = ["# Search: what the launch is worth", "", f"{record['seeds']} seeds, spaces with restrictions."]
    for folder in record["folders"]:
        lines += ["", ", ".join(folder["spaces"]) + ":", ""]
        lines += [
            f"| known before anything ran | ratio at {' / '.join(map(str, AT))} "
            f"| within 5 %, % of runs | score to {BUDGET} |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {row} | {ratios(f['ratio'])} | {shares(f['within'])} | {f['score']:.3f} |"
            for row, f in folder["rows"].items()
        ]
    return lines


if __name__ == "__main__":
    main()
