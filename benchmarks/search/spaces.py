"""Recorded tuning spaces, as our own spaces and as look-up tables."""

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search.launches import WARP, launch_of
from warpsmith.domain.templates.space import (
    Configuration,
    Constraint,
    Parameter,
    Space,
    configuration_key,
)
from warpsmith.search.spaces.feasible_set import FeasibleSet, enumerate_space
from warpsmith.search.spaces.launch_prior import SizedLaunch, launched

WITHIN = 1.05


@dataclass(frozen=True)
class RecordedSpace:
    """A kernel brute-forced on a device: every configuration's time, or that it failed."""

    name: str
    kernel: str
    tune_params: Mapping[str, list[Any]]
    restrictions: tuple[str, ...]
    times: Mapping[str, float | None]
    """Milliseconds by `configuration_key`; None where the configuration failed."""

    @cached_property
    def space(self) -> Space:
        """The same space in our words."""
        return Space(
            parameters=tuple(Parameter(name=n, values=tuple(v)) for n, v in self.tune_params.items()),
            constraints=tuple(Constraint(expression=r) for r in self.restrictions),
        )

    @cached_property
    def feasible(self) -> FeasibleSet:
        """Every configuration that the restrictions allow and that was recorded.

        Where a recording names no restriction, what it did not try was not allowed by those that it had;
        where it ended early, what it tried is a random part.
        """
        allowed = enumerate_space(self.space, [{}])
        tried = [self.knows(allowed.configuration(row)) for row in range(len(allowed))]
        return FeasibleSet(allowed.space, allowed.codes[tried], allowed.allowed[tried])

    @cached_property
    def launched(self) -> SizedLaunch | None:
        """What the launch says of every row; None for kernels whose launch was not kept, or whose template
        has other parameters today."""
        try:
            found = launch_of(self.kernel)
            return None if found is None else launched(found[0], self.feasible, found[1], WARP)
        except KeyError:
            return None

    @cached_property
    def best(self) -> float:
        """The global optimum in milliseconds."""
        return min(t for t in self.times.values() if t is not None)

    @cached_property
    def sorted_times(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """All times, failures as infinity, ascending."""
        return np.sort([math.inf if t is None else t for t in self.times.values()])

    def time(self, configuration: Configuration) -> float | None:
        """Milliseconds, or None where the configuration failed. KeyError: it was never recorded."""
        return self.times[configuration_key(configuration)]

    def knows(self, configuration: Configuration) -> bool:
        """Whether the configuration was recorded."""
        return configuration_key(configuration) in self.times


def load(path: Path) -> RecordedSpace:
    """Read one `NAME-DEVICE.json.gz`."""
    with gzip.open(path) as stream:
        data = json.load(stream)
    params: dict[str, list[Any]] = data["tune_params"]
    times: dict[str, float | None] = {}
    stem = path.name.removesuffix(".json.gz")
    for key, recorded in data["cache"].items():
        entry = recorded if isinstance(recorded, dict) else {"time": recorded}
        values = _values(key, entry, params)
        name = configuration_key(values)
        time = entry["time"]
        times[name] = float(time) if isinstance(time, int | float) and math.isfinite(time) else None
    return RecordedSpace(
        name=stem,
        kernel=stem.split("-")[0],
        tune_params=params,
        restrictions=tuple(data.get("restrictions") or ()),
        times=times,
    )


def load_all(folder: Path) -> list[RecordedSpace]:
    """Every recorded space of a folder, by name."""
    return [load(p) for p in sorted(folder.glob("*.json.gz"))]


def _values(key: str, entry: Mapping[str, Any], params: Mapping[str, list[Any]]) -> dict[str, Any]:
    if all(n in entry for n in params):
        return {n: entry[n] for n in params}
    words = key.split(",")
    return {
        n: next(v for v in values if str(v) == w)
        for (n, values), w in zip(params.items(), words, strict=True)
    }
