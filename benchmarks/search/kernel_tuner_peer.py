"""Kernel Tuner's strategies on one recorded space, through its own simulation mode.

Runs in the bench environment and imports nothing of ours. Reads one job, a line, from stdin and writes to
stdout one line a run: the keys of the configurations it evaluated, in order, and the seconds it took.
"""

import contextlib
import io
import json
import random
import sys
import time
import warnings
from typing import Any

import kernel_tuner
import numpy as np
from kernel_tuner.runners import simulation


class Visited(set[str]):
    """The unique configurations a run evaluated, which also remembers their order."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def add(self, key: str) -> None:
        """Called by the runner once for every configuration that counts towards the budget."""
        super().add(key)
        self.order.append(key)


class RecordingRunner(simulation.SimulationRunner):
    """The simulation runner; says afterwards what was evaluated, and when the first evaluation began."""

    latest: "RecordingRunner"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.visited_results = Visited()
        self.began: float | None = None
        RecordingRunner.latest = self

    def run(self, parameter_space: Any, tuning_options: Any) -> Any:
        """Runs after the space was built and the cache read, which are not the strategy's doing."""
        self.began = self.began or time.process_time()
        return super().run(parameter_space, tuning_options)


def one(job: dict[str, Any], strategy: str, seed: int) -> dict[str, Any]:
    """One run; a fresh Searchspace each time, since shared ones change later results."""
    random.seed(seed)
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel_tuner.tune_kernel(
            job["kernel"],
            "__global__ void kernel() {}",
            (1, 1, 1),
            [],
            job["tune_params"],
            restrictions=job["restrictions"] or None,
            strategy=strategy,
            strategy_options={"max_fevals": job["budget"]},
            cache=job["cache"],
            simulation_mode=True,
            lang="CUDA",
            quiet=True,
        )
    runner = RecordingRunner.latest
    seconds = time.process_time() - (runner.began or time.process_time())
    return {
        "strategy": strategy,
        "seed": seed,
        "keys": runner.visited_results.order,
        "s": seconds,
        "version": kernel_tuner.__version__,
    }


def main() -> None:
    """One job: strategies x seeds on one space."""
    job = json.loads(sys.stdin.readline())
    simulation.SimulationRunner = RecordingRunner
    for strategy in job["strategies"]:
        for seed in job["seeds"]:
            print(json.dumps(one(job, strategy, seed)), flush=True)


if __name__ == "__main__":
    main()
