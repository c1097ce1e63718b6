"""Kernels with sizes, shapes and launches of their own, as whole jobs; see `jobs.yaml`.

    python -m benchmarks.opencl_corpus.bindings --checkouts FOLDER --out FOLDER [--mirrors FOLDER] [--only X]

Writes each job as a file, for `benchmarks.production.honest --jobs-dir` and for `warpsmith tune`.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.sources import PROJECTS, fetch
from benchmarks.provenance import record_folder
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.scaffold.job_file import job_scaffold
from warpsmith.job_files.jobfile import parse_job
from warpsmith.job_files.yaml_data import read_yaml
from warpsmith.source.kernels.kernel_definitions import Dialect, find_kernels

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
    projects = {p.name: (p, fetch(p, checkouts, mirrors)) for p in PROJECTS}
    for binding in read_yaml(BINDINGS.read_text()):
        name = binding["kernel"]
        if only not in name:
            continue
        owner, _, rest = name.partition("/")
        file, _, entry = rest.rpartition(":")
        project, folder = projects[owner]
        source = unwrapped((folder / file).read_text(errors="replace"))
        if project.alone:
            source = alone(source, entry)
        binding["sizes"] = binding["sizes"] | (sizes or {})
        yield name, _job(source, entry, binding, project.options, seconds)


def unwrapped(text: str) -> str:
    """A source that a macro turns into a string, without that macro."""
    wrapped = re.search(r"=\s*[A-Z_]+\s*\((.*)\)\s*;\s*(?:#endif.*)?\Z", text, re.S)
    return text if wrapped is None else wrapped.group(1)


def alone(source: str, entry: str) -> str:
    """The source without its kernels other than `entry`; functions and macros stay."""
    for kernel in find_kernels(source, Dialect.OPENCL):
        if kernel.name != entry:
            head = rf"\b(?:__)?kernel\s+void\s+{kernel.name}\s*\([^{{;]*"
            source = re.sub(head + re.escape(kernel.body), "", source, count=1)
    return source


def _job(
    source: str, entry: str, binding: Mapping[str, Any], options: tuple[str, ...], seconds: float
) -> Job:
    data: dict[str, Any] = read_yaml(job_scaffold(source, "kernel.cl", Dialect.OPENCL, entry))
    kernel = data["kernel"]
    del kernel["source_file"]
    kernel |= {"source": source, "options": list(options)}
    kernel["launch"] = {"grid": binding["grid"], "block": binding["block"]}
    kernel["arguments"] = [_argument(a, binding) for a in kernel["arguments"]]
    data["workloads"] = [{"dimensions": binding["sizes"]}]
    data["constraints"] = [{"expression": e} for e in binding.get("constraints", ())]
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
    if argument["role"] == "scalar" and re.fullmatch(r"-?\d+", str(argument["value"])):
        # A plain number is checked with other values too; those of a stride lead outside the buffers.
        argument["value"] = f"{argument['value']} + 0 * {next(iter(binding['sizes']))}"
    if argument["role"] == "output":
        argument.pop("draw", None)
    return argument


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--checkouts", type=Path, required=True, help="folder that the projects are fetched to"
    )
    parser.add_argument(
        "--mirrors", type=Path, help="folder of git directories to fetch from, OWNER+NAME/repo"
    )
    parser.add_argument("--seconds", type=float, default=45, help="budget of each job")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    parser.add_argument("--out", type=record_folder, required=True, help="folder for the job files")
    arguments = parser.parse_args()
    arguments.checkouts.mkdir(parents=True, exist_ok=True)
    for name, job in bound_jobs(arguments.checkouts, arguments.mirrors, arguments.seconds, arguments.only):
        file = arguments.out / f"{re.sub('[/:]', '_', name)}.json"
        file.write_text(job.model_dump_json())
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
