"""A small synthetic recording, and jobs for it."""

import itertools
import json
from pathlib import Path
from typing import Any

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration

KERNEL = "synthetic"
DEVICE = "bench"
PARAMETERS: dict[str, list[int]] = {
    "BLOCK": [32, 64, 128, 256, 512, 1024],
    "ITEMS": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "UNROLL": [1, 2, 4, 8],
    "STAGES": [1, 2, 3, 4],
    "WIDE": list(range(12)),
}
"""11,520 configurations."""


def milliseconds(configuration: Configuration) -> float | str:
    """Smooth with one optimum; where both are large the configuration fails."""
    values = {n: int(v) for n, v in configuration.items()}
    if values["BLOCK"] == 1024 and values["ITEMS"] > 8:
        return "RuntimeFailedConfig"
    wanted = {"BLOCK": 256, "ITEMS": 6, "UNROLL": 4, "STAGES": 3, "WIDE": 7}
    distance = sum(
        (PARAMETERS[n].index(v) - PARAMETERS[n].index(wanted[n])) ** 2 / len(PARAMETERS[n])
        for n, v in values.items()
    )
    return 0.05 * (1 + distance)


def write_recording(folder: Path) -> Path:
    """`synthetic-bench.json` in the folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    cache = {}
    for values in itertools.product(*PARAMETERS.values()):
        configuration: Configuration = dict(zip(PARAMETERS, values, strict=True))
        cache[",".join(map(str, values))] = {**configuration, "time": milliseconds(configuration)}
    text = json.dumps({"tune_params": PARAMETERS, "cache": cache})
    (folder / f"{KERNEL}-{DEVICE}.json").write_text(text)
    return folder


def replay_job(name: str = "replay", **changes: Any) -> dict[str, Any]:
    """The JSON of a job for that recording; `changes` are fields of `Job`."""
    fields: dict[str, Any] = {
        "name": name,
        "kernel": {
            "backend": "replay",
            "source": "// recorded",
            "entry": KERNEL,
            "arguments": [{"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]}],
            "launch": {"grid": ["1"], "block": ["BLOCK"]},
        },
        "workloads": [{"dimensions": {"n": 16}}],
        "parameters": [{"name": n, "values": v} for n, v in PARAMETERS.items()],
        "rewrite": {"enabled": False},
        "searcher": "random",
        "budget": {"trials": 20, "seconds": 600},
    }
    return Job.model_validate(fields | changes).model_dump(mode="json", exclude_none=True)
