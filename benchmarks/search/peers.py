"""The peers: Optuna's TPE in this process, Kernel Tuner's strategies in an environment of their own."""

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import optuna

from benchmarks.search.replay import Trace
from benchmarks.search.spaces import RecordedSpace
from warpsmith.domain.templates.space import Configuration
from warpsmith.search.searchers.optuna_study import distributions
from warpsmith.search.spaces.feasible_set import FeasibleSet

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-bench"
STRATEGIES = ("adaptive_tabu_greywolf", "hybrid_vndx", "genetic_algorithm")
MOST_ASKS = 3_000
"""Per search; 200 evaluations of the shared spaces need 300 to 900."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


class OptunaTpe:
    """Optuna's default TPE over categorical parameters; asked again where it leaves the space or repeats.

    What lies outside and what fails is told as infinity and a repeat as the value known: of four ways
    measured it needs the fewest asks by far, and only with it does every search reach its budget.
    """

    def __init__(self, feasible: FeasibleSet, seed: int) -> None:
        self._feasible = feasible
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self._distributions = dict(distributions(feasible.space))
        self._open: dict[int, optuna.Trial] = {}
        self._values: dict[int, float] = {}
        self._asks = 0

    def ask(self, count: int) -> Sequence[Configuration]:
        """Configurations of the set not proposed before."""
        out: list[Configuration] = []
        while len(out) < count and self._asks < MOST_ASKS:
            self._asks += 1
            trial = self._study.ask(self._distributions)
            index = self._feasible.index(trial.params)
            if index is None or index in self._values:
                self._study.tell(trial, math.inf if index is None else self._values[index])
                continue
            self._values[index] = math.inf
            self._open[index] = trial
            out.append(dict(trial.params))
        return out

    def tell(self, configuration: Configuration, value: float | None) -> None:
        """See `warpsmith.search.searchers.set_searcher.SetSearcher.tell`."""
        index = self._feasible.index(configuration)
        if index is not None:
            self._values[index] = math.inf if value is None else value
            self._study.tell(self._open.pop(index), self._values[index])


def kernel_tuner_environment() -> Path:
    """The Python that has Kernel Tuner. RuntimeError: the environment is missing."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{ENVIRONMENT.name} is missing: run benchmarks/search/environment.sh first")
    return python


def kernel_tuner(
    space: RecordedSpace, strategies: Sequence[str], seeds: int, budget: int
) -> Iterator[tuple[str, int, Trace, float, str]]:
    """(strategy, seed, values in order, seconds per evaluation, version) of every run.

    Raises:
        RuntimeError: the bench environment is missing or Kernel Tuner failed.
    """
    python = kernel_tuner_environment()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        times = _write_cache(space, cache)
        job = {
            "kernel": space.kernel,
            "tune_params": space.tune_params,
            "restrictions": list(space.restrictions),
            "strategies": list(strategies),
            "seeds": list(range(seeds)),
            "budget": budget,
            "cache": str(cache),
        }
        done = subprocess.run(
            [str(python), str(Path(__file__).with_name("kernel_tuner_peer.py"))],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
    if done.returncode != 0:
        raise RuntimeError(f"Kernel Tuner on {space.name}: {done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        run = json.loads(line)
        trace: Trace = [times[key] for key in run["keys"]]
        yield run["strategy"], run["seed"], trace, run["s"] / max(1, len(trace)), run["version"]


def _write_cache(space: RecordedSpace, path: Path) -> dict[str, float | None]:
    """The recording as a cache file of Kernel Tuner; the values by its keys."""
    names = list(space.tune_params)
    entries = {}
    times: dict[str, float | None] = {}
    for row in range(len(space.feasible)):
        configuration = space.feasible.configuration(row)
        if not space.knows(configuration):
            continue
        key = ",".join(str(configuration[n]) for n in names)
        times[key] = space.time(configuration)
        entries[key] = {
            **{n: configuration[n] for n in names},
            "time": "RuntimeFailedConfig" if times[key] is None else times[key],
        }
    header = {
        "device_name": space.name,
        "kernel_name": space.kernel,
        "problem_size": [1, 1, 1],
        "tune_params_keys": names,
        "tune_params": {name: list(values) for name, values in space.tune_params.items()},
        "objective": "time",
        "cache": entries,
    }
    path.write_text(json.dumps(header, indent=""))
    return times
