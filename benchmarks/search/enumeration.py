"""How long the feasible set takes: `python -m benchmarks.search.enumeration`.

The spaces have the shapes of published ones: rules that bind few parameters each, so that little of a
large Cartesian product is allowed. Each runs in a process of its own, for its peak memory.
"""

import argparse
import itertools
import json
import math
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from warpsmith.domain.space import Constraint, Parameter, Space
from warpsmith.search.feasible_set import enumerate_space

REPEATS = 5


def _space(parameters: dict[str, tuple[int, ...]], constraints: list[str]) -> Space:
    return Space(
        parameters=tuple(Parameter(name=n, values=v) for n, v in parameters.items()),
        constraints=tuple(Constraint(expression=c) for c in constraints),
    )


def stencil() -> Space:
    """The size of hotspot 2024: 22.2 million combinations under three rules."""
    return _space(
        {
            "block_x": (1, 2, 4, 8, *(32 * i for i in range(1, 33)), 7),
            "block_y": tuple(2**i for i in range(6)),
            "tile_x": tuple(range(1, 11)),
            "tile_y": tuple(range(1, 11)),
            "steps": tuple(range(1, 11)),
            "unroll": tuple(range(1, 11)),
            "blocks_per_sm": tuple(range(5)),
            "shared": (0, 1),
        },
        [
            "32 <= block_x * block_y <= 1024",
            "steps % unroll == 0",
            "(block_x * tile_x + steps * 2) * (block_y * tile_y + steps * 2) * (2 + shared) * 4 <= 49152",
            "blocks_per_sm == 0 or block_x * block_y * blocks_per_sm <= 2048",
        ],
    )


def divisors(size: int, rows: int) -> Space:
    """Tilings of `rows` x `rows` loops by powers of two that must divide each other, level under level."""
    powers = tuple(2**i for i in range(size))
    parameters: dict[str, tuple[int, ...]] = {}
    constraints = []
    top = powers[-1]
    for axis in ("i", "j"):
        names = [f"{axis}{level}" for level in range(rows)]
        parameters |= dict.fromkeys(names, powers)
        constraints += [f"{outer} % {inner} == 0" for outer, inner in itertools.pairwise(names)]
        constraints += [f"{top} % {names[0]} == 0"]
    constraints += ["i1 * j1 <= 1024", "i2 * j2 <= 64", "i0 * j0 >= 64"]
    return _space(parameters, constraints)


def tensor(levels: int) -> Space:
    """2.4e9 combinations of a matrix product with several tiles an axis, heavily constrained."""
    powers = tuple(2**i for i in range(levels))
    names = ("wg_m", "wg_n", "wg_k", "th_m", "th_n", "vec_m", "vec_n", "load_a", "load_b", "split")
    return _space(
        dict.fromkeys(names, powers) | {"stages": (1, 2)},
        [
            "wg_m % th_m == 0",
            "wg_n % th_n == 0",
            "th_m % vec_m == 0",
            "th_n % vec_n == 0",
            "vec_m * vec_n <= 8",
            "wg_m * wg_n >= 1024",
            "wg_m * wg_n <= 4096",
            "(wg_m // th_m) * (wg_n // th_n) == load_a * wg_k",
            "load_a * wg_k == load_b * wg_k * split",
            "stages * (wg_m + wg_n) * wg_k * 4 <= 16384",
        ],
    )


SPACES = {
    "stencil (22 million)": stencil,
    "tilings (19 million)": lambda: divisors(8, 4),
    "matrix product (2.1 billion)": lambda: tensor(8),
    "tilings (2.2 billion)": lambda: divisors(6, 6),
}


def measure(name: str) -> dict[str, object]:
    """Median time of a space, its counts, and how far the process grew."""
    space = SPACES[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu = [], []
    for _ in range(REPEATS):
        began, cpu_began = time.perf_counter(), time.process_time()
        feasible = enumerate_space(space, [{}])
        cpu.append(time.process_time() - cpu_began)
        seconds.append(time.perf_counter() - began)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "space": name,
        "cartesian": math.prod(len(p.values) for p in space.parameters),
        "feasible": feasible.count,
        "exact": feasible.exact,
        "median_s": round(statistics.median(seconds), 4),
        "median_cpu_s": round(statistics.median(cpu), 4),
        "first_s": round(seconds[0], 4),
        "grown_mib": round(grown / 1024, 1),
    }


def main() -> None:
    """Measure every space and write the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.enumeration", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/search"))
    options = parser.parse_args()
    rows = []
    for name in SPACES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows.append(pool.submit(measure, name).result())
        print(rows[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "enumeration.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
