"""Recorded spaces: what is read of a recording, and how those of the hub become ones."""

import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.search.hub import RESTRICTIONS, converted
from benchmarks.search.launches import LAUNCHES, launch_of
from benchmarks.search.spaces import RecordedSpace, load


def saved(tmp_path: Path, name: str, space: dict[str, Any]) -> RecordedSpace:
    path = tmp_path / f"{name}.json.gz"
    with gzip.open(path, "wt") as stream:
        json.dump(space, stream)
    return load(path)


def test_a_cache_of_kernel_tuner_keeps_restrictions_and_no_single_timings(tmp_path: Path) -> None:
    params = {"block_size_x": [32, 64], "tile_size": [1, 2], "between_method": [0], "use_method": [0]}
    cache = {
        f"{bx},{tile},0,0": {
            "block_size_x": bx,
            "tile_size": tile,
            "between_method": 0,
            "use_method": 0,
            "time": bx / tile,
            "times": [1.0] * 32,
        }
        for bx in (32, 64)
        for tile in (1, 2)
    }
    space = converted({"tune_params": params, "cache": cache}, RESTRICTIONS["pnpoly"])
    assert all("times" not in entry for entry in space["cache"].values())
    read = saved(tmp_path, "pnpoly-X", space)
    assert (len(read.feasible), read.best, read.launched is not None) == (4, 16.0, True)


def test_a_kernel_whose_launch_was_not_kept_has_none(tmp_path: Path) -> None:
    space = {"tune_params": {"A": [1, 2]}, "restrictions": ["A > 0"], "cache": {}}
    assert saved(tmp_path, "other-X", space).launched is None


def test_every_kernel_of_the_hub_has_a_launch() -> None:
    assert RESTRICTIONS.keys() <= LAUNCHES.keys()


def test_an_example_is_launched_as_its_template_says() -> None:
    found = launch_of("stencil")
    assert found is not None
    launch, scopes = found
    assert [part.text for part in launch.block] == ["WS_BLOCK_X", "WS_BLOCK_Y"]
    assert {"height", "width"} <= scopes[0].keys()
    assert launch_of("no_such_kernel") is None


def test_a_template_of_today_with_other_parameters_says_nothing_of_a_recording() -> None:
    """A rule has split `WS_ITEMS` since the stencil was recorded."""
    folder = Path(__file__).parents[2] / "benchmarks" / "results" / "search" / "h200" / "spaces"
    known = {path.name.partition("-")[0]: load(path).launched is not None for path in folder.iterdir()}
    assert not known.pop("stencil") and all(known.values()) and len(known) == 5
