"""Beyond the cold search: history, misleading history, batches, compile facts, overhead.

`python -m benchmarks.search.scenarios --spaces FOLDER`: writes scenarios.json and scenarios.md.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import record_folder
from benchmarks.search.compare import BUDGET, in_processes
from benchmarks.search.metrics import BUDGETS, best_so_far, summary
from benchmarks.search.replay import Setup, Trace, replay
from benchmarks.search.report import AT, ratios, shares
from benchmarks.search.spaces import WITHIN, RecordedSpace, load_all
from warpsmith.domain.job import SearcherName
from warpsmith.domain.space import Configuration, Constraint, Parameter, Space, configuration_key
from warpsmith.search.factory import make_searcher
from warpsmith.search.feasible_set import FeasibleSet, enumerate_space
from warpsmith.search.warm_starts import starts_from

COLD, SETTLED, HISTORY, MISLED, BATCHES, PLAIN, PRUNED = (
    "cold",
    "cold, ended by itself",
    "history of other GPUs",
    "misleading history",
    "batches of 8",
    "compile facts ignored",
    "compile facts as pruners",
)
OVERHEAD = "overhead"
SCENARIOS = (COLD, SETTLED, HISTORY, MISLED, BATCHES, PLAIN, PRUNED)
BATCH = 8
FORESEEN = 4
"""Configurations that are compiled for each one that runs, where compile facts count."""
FACTS_SEEDS = 3
"""Times as many, since there are only two spaces with compile facts."""
LEAST_GAIN = 0.001
"""What a job on a quiet device ends at, see `worker.device_setup`."""


@dataclass(frozen=True)
class Task:
    """One scenario on one space."""

    folders: tuple[str, ...]
    """Of the space itself first; of others that are history only."""
    space: str
    scenario: str
    seeds: tuple[int, ...]


_SPACES: dict[str, RecordedSpace] = {}


def relatives(space: RecordedSpace, spaces: Sequence[RecordedSpace]) -> list[RecordedSpace]:
    """Other devices' recordings of the same kernel."""
    return [s for s in spaces if s.kernel == space.kernel and s.name != space.name]


def past(space: RecordedSpace, misleading: bool) -> list[tuple[Configuration, float | None]]:
    """A recording as history; a misleading one claims that the slowest was the fastest."""
    out: list[tuple[Configuration, float | None]] = []
    for row in range(len(space.feasible)):
        configuration = space.feasible.configuration(row)
        if space.knows(configuration):
            value = space.time(configuration)
            out.append((configuration, 1.0 / value if value and misleading else value))
    return out


def pruned(space: RecordedSpace) -> RecordedSpace:
    """The space without what is known not to build or launch before anything is measured."""
    keep = np.array(
        [
            configuration_key(space.feasible.configuration(r)) not in space.failed_early
            for r in range(len(space.feasible))
        ]
    )
    smaller = RecordedSpace(
        space.name,
        space.kernel,
        space.tune_params,
        space.restrictions,
        space.times,
        frozenset(),
        space.reports,
    )
    # The cached property: the set that a searcher is given.
    smaller.__dict__["feasible"] = FeasibleSet(
        space.space, space.feasible.codes[keep], space.feasible.allowed[keep]
    )
    return smaller


def work(task: Task) -> tuple[Task, list[Trace], float]:
    """Every seed of a scenario."""
    if not _SPACES:
        _SPACES.update({s.name: s for folder in task.folders for s in load_all(Path(folder))})
    space = _SPACES[task.space]
    starts: list[Configuration] = []
    if task.scenario in (HISTORY, MISLED):
        others = relatives(space, list(_SPACES.values()))
        starts = starts_from([past(o, task.scenario == MISLED) for o in others])
    if task.scenario == PRUNED:
        space = pruned(space)
    batch = BATCH if task.scenario == BATCHES else 1
    least = LEAST_GAIN if task.scenario == SETTLED else 0.0
    ahead = FORESEEN if task.scenario == PRUNED else 0
    setup = Setup(starts=starts, least_gain=least)
    runs = [replay(space, seed, BUDGET, setup, batch, ahead) for seed in task.seeds]
    return task, [t for t, _ in runs], float(np.mean([s for _, s in runs]))


def evaluations_to_reach(space: RecordedSpace, traces: Sequence[Trace]) -> list[float]:
    """Per run: evaluations until within 5 %; the budget where it never was."""
    out = []
    for trace in traces:
        hits = np.flatnonzero(best_so_far(trace, BUDGET) <= WITHIN * space.best)
        out.append(float(hits[0]) + 1 if hits.size else float(BUDGET))
    return out


def overhead(configurations: int, budgets: Sequence[int] = (200, 1000, 3000)) -> list[dict[str, float]]:
    """Milliseconds of searcher time per evaluation on a made space: of all, and of the last 50.

    Processor time, so that a busy machine does not count.
    """
    space = Space(
        parameters=tuple(Parameter(name=n, values=tuple(2**i for i in range(6))) for n in "ABCDEF"),
        constraints=(Constraint(expression="A * B * C <= 1024"), Constraint(expression="D * E <= 512")),
    )
    feasible = enumerate_space(space, [{}])
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(feasible))[:configurations])
    feasible = FeasibleSet(space, feasible.codes[rows], feasible.allowed[rows])
    slopes = rng.random((6, 6))
    searcher = make_searcher(SearcherName.DEFAULT, feasible, 0)
    spent: list[float] = []
    while len(spent) < min(max(budgets), len(feasible)):
        began = time.process_time()
        (configuration,) = searcher.ask(1)
        code = feasible.codes[feasible.index(configuration)]
        value = 1.0 + float(slopes[np.arange(6), code].sum() + 0.3 * slopes[code[0], code[3]])
        searcher.tell(configuration, value)
        spent.append(time.process_time() - began)
    return [
        {
            "configurations": len(feasible),
            "evaluations": b,
            "mean_ms": float(np.mean(spent[:b])) * 1e3,
            "last_50_ms": float(np.mean(spent[b - 50 : b])) * 1e3,
        }
        for b in budgets
        if b <= len(spent)
    ]


def main() -> None:
    """Run every scenario and write the record."""
    options = _options()
    spaces = load_all(options.spaces)
    past_spaces = spaces + [s for folder in options.history for s in load_all(folder)]
    related = [s for s in spaces if s.restrictions and relatives(s, past_spaces)]
    found: dict[str, dict[str, list[Trace]]] = {}
    for task, traces, _ in in_processes(work, _tasks(options, spaces, related), options.processes):
        found.setdefault(task.scenario, {})[task.space] = traces
        print(task.scenario, task.space, flush=True)
    path = options.out / "scenarios.json"
    record: dict[str, Any] = {"seeds": options.seeds, "scenarios": {}}
    before = json.loads(path.read_text()) if options.only and path.exists() else {}
    if before.get("seeds") == options.seeds:
        record["scenarios"] |= before["scenarios"]
    for scenario, traces in found.items():
        record["scenarios"][scenario] = _figures([s for s in spaces if s.name in traces], traces)
    record["relatives"] = {s.name: [o.name for o in relatives(s, past_spaces)] for s in related}
    if options.only and OVERHEAD not in options.only:
        record["overhead"] = before.get("overhead", [])
    else:
        record["overhead"] = next(in_processes(overhead, [20_000], 1))
    path.write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "scenarios.md").write_text("\n".join(markdown(record)) + "\n")
    print("\n".join(markdown(record)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.scenarios", description=__doc__)
    parser.add_argument("--spaces", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=record_folder, default=Path("benchmarks/results/search"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="these, or overhead; those of as many seeds stay in OUT")
    parser.add_argument(
        "--history", type=Path, nargs="*", default=[], help="more recordings, as history only"
    )
    return parser.parse_args()


def _tasks(
    options: argparse.Namespace, spaces: Sequence[RecordedSpace], related: Sequence[RecordedSpace]
) -> list[Task]:
    """What is run: some scenarios on spaces with relatives, some on those with recorded compile facts."""
    facts = [s for s in spaces if s.name.startswith("ktt_")]
    plan = [(c, s) for c in (COLD, SETTLED, HISTORY, MISLED, BATCHES) for s in related]
    plan += [(c, s) for c in (PLAIN, PRUNED) for s in facts]
    folders = (str(options.spaces), *map(str, options.history))
    return [
        Task(folders, s.name, c, tuple(range(options.seeds * (FACTS_SEEDS if s in facts else 1))))
        for c, s in plan
        if not options.only or c in options.only
    ]


def _figures(spaces: Sequence[RecordedSpace], traces: dict[str, list[Trace]]) -> dict[str, Any]:
    """The record of one scenario over its spaces."""
    reach = [np.mean(evaluations_to_reach(s, traces[s.name])) for s in spaces]
    lengths = [np.mean([len(t) for t in traces[s.name]]) for s in spaces]
    return summary(spaces, traces) | {
        "mean_evaluations_to_5_percent": float(np.mean(reach)),
        "mean_evaluations": float(np.mean(lengths)),
    }


def markdown(record: dict[str, Any]) -> list[str]:
    """The record as two tables."""
    lines = [
        "# Search: history, batches, compile facts, overhead",
        "",
        f"{record['seeds']} seeds. Compile facts: the two `ktt_` spaces, {FACTS_SEEDS} times the seeds, "
        f"{FORESEEN} configurations compiled for each that runs; the others: the"
        f" {len(record['relatives'])} restricted spaces.",
        "History: the same kernel on "
        + ", ".join(f"{len(others)} other GPUs ({name})" for name, others in record["relatives"].items())
        + ".",
        "",
        f"| scenario | ratio at {AT} | within 5 %, % of runs | score | mean evaluations | of these, to 5 % |",
        "|---|---|---|---|---|---|",
    ]
    for name in (n for n in SCENARIOS if n in record["scenarios"]):
        f = record["scenarios"][name]
        lines.append(
            f"| {name} | {ratios(f['ratio'])} | {shares(f['within'])} | {f['score']:.3f} "
            f"| {f.get('mean_evaluations', BUDGET):.1f} | {f['mean_evaluations_to_5_percent']:.1f} |"
        )
    lines += ["", f"Budgets: {', '.join(map(str, BUDGETS))}."]
    if record["overhead"]:
        lines += ["", "| evaluations | mean ms | last 50, ms |", "|---|---|---|"]
    lines += [
        f"| {o['evaluations']} of {o['configurations']} | {o['mean_ms']:.1f} | {o['last_50_ms']:.1f} |"
        for o in record["overhead"]
    ]
    return lines


if __name__ == "__main__":
    main()
