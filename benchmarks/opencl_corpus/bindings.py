"""Kernels with sizes, shapes and launches of their own, as whole jobs; see `jobs.yaml`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.opencl_corpus.kernels import unwrapped
from benchmarks.opencl_corpus.sources import PROJECTS, fetch
from warpsmith.domain.job import Job
from warpsmith.jobfile import parse_job
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect
from warpsmith.rewrite.skeleton.job_file import job_skeleton

BINDINGS = Path(__file__).parent / "jobs.yaml"


def bound_jobs(
    checkouts: Path,
    mirrors: Path | None,
    seconds: float,
    only: str = "",
    sizes: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, Job]]:
    """Name and job of every kernel in `jobs.yaml`.

    Args:
        seconds: budget of each job.
        only: kernels whose name holds this.
        sizes: dimensions instead of those in the file.
    """
    folders = {p.name: fetch(p, checkouts, mirrors) for p in PROJECTS}
    options = {p.name: p.options for p in PROJECTS}
    for binding in yaml.safe_load(BINDINGS.read_text()):
        name = binding["kernel"]
        if only not in name:
            continue
        project, _, rest = name.partition("/")
        file, _, entry = rest.rpartition(":")
        source = unwrapped((folders[project] / file).read_text(errors="replace"))
        binding["sizes"] |= sizes or {}
        yield name, _job(source, entry, binding, options[project], seconds)


def _job(
    source: str, entry: str, binding: Mapping[str, Any], options: tuple[str, ...], seconds: float
) -> Job:
    data: dict[str, Any] = yaml.safe_load(job_skeleton(source, "kernel.cl", Dialect.OPENCL, entry))
    kernel = data["kernel"]
    del kernel["source_file"]
    kernel |= {"source": source, "options": list(options)}
    kernel["launch"] = {"grid": binding["grid"], "block": binding["block"]}
    kernel["arguments"] = [_argument(a, binding) for a in kernel["arguments"]]
    data["workloads"] = [{"dimensions": binding["sizes"]}]
    data["budget"] = {"rounds": 1, "trials": 400, "seconds": seconds}
    return parse_job(data)


def _argument(read: Mapping[str, Any], binding: Mapping[str, Any]) -> dict[str, Any]:
    """An argument as `init` reads it, with what the binding says instead."""
    argument, name = dict(read), read["name"]
    for field in ("dtype", "shape", "role", "draw", "value"):
        said = binding.get(f"{field}s", {})
        if name in said:
            argument[field] = said[name]
    if argument["dtype"] == "TODO":
        argument["dtype"] = "float32"
    if argument["role"] == "output":
        argument.pop("draw", None)
    return argument
