"""Every kernel of a project as a job, by what `init` reads out of its source alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.opencl_corpus.sources import Project
from warpsmith.domain.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.jobfile import parse_job
from warpsmith.rewrite.skeleton import job_skeleton
from warpsmith.rewrite.syntax import Dialect, find_kernels

EXTENT = 36
"""Every size argument of a kernel has this value."""
ELEMENTS = EXTENT**3
"""Every buffer has so many: enough for three sizes multiplied."""


@dataclass(frozen=True)
class Found:
    """One kernel definition of a corpus, with its job where one could be made."""

    name: str
    """`project/file:kernel`."""
    job: Job | None
    why_not: str = ""


def find(project: Project, folder: Path) -> Iterator[Found]:
    """The kernels of all files of a project, in the order of files and lines."""
    for path in sorted(folder.rglob("*.cl")):
        source = unwrapped(path.read_text(errors="replace"))
        seen: set[str] = set()
        for kernel in find_kernels(source, Dialect.OPENCL):
            if kernel.name in seen:
                continue
            seen.add(kernel.name)
            name = f"{project.name}/{path.relative_to(folder)}:{kernel.name}"
            try:
                yield Found(name, as_job(source, kernel.name, kernel.body, project.options))
            except InvalidInput as exc:
                yield Found(name, None, str(exc).splitlines()[0])


def unwrapped(text: str) -> str:
    """A source that a macro turns into a string, without that macro."""
    wrapped = re.search(r"=\s*[A-Z_]+\s*\((.*)\)\s*;\s*(?:#endif.*)?\Z", text, re.S)
    return text if wrapped is None else wrapped.group(1)


def as_job(source: str, entry: str, body: str, options: tuple[str, ...]) -> Job:
    """A job for one kernel: the skeleton of `init`, with invented sizes that its indices stay within.

    Raises:
        InvalidInput: the form has no word for one of its arguments.
    """
    data: dict[str, Any] = yaml.safe_load(job_skeleton(source, "kernel.cl", Dialect.OPENCL, entry))
    kernel = data["kernel"]
    del kernel["source_file"]
    kernel["source"] = source
    kernel["options"] = list(options)
    sizes = data["workloads"][0]["dimensions"]
    kernel["launch"] = _launch(body, kernel["launch"]["block"], list(sizes))
    for argument in kernel["arguments"]:
        if argument["dtype"] == "TODO":
            argument["dtype"] = "float32"
        if argument["role"] in ("input", "inout", "output"):
            argument["shape"] = [ELEMENTS]
            whole = not argument["dtype"].startswith(("float", "bfloat"))
            if whole and argument["role"] != "output":
                argument["draw"] = {"distribution": "integers", "low": 0, "high": EXTENT}
    data["workloads"] = [{"dimensions": dict.fromkeys(sizes, EXTENT)}]
    return parse_job(data)


def _launch(body: str, block: list[int], sizes: list[str]) -> dict[str, Any]:
    """One work-item an element along as many axes as the kernel asks for ids of."""
    asked = re.findall(r"get_(?:global|local|group)_id\s*\(\s*([012])\s*\)", body)
    axes = 1 + max((int(axis) for axis in asked), default=0)
    if len(block) == 1:
        block = {1: block, 2: [16, 4], 3: [8, 4, 2]}[axes]
    names = [_bound(body, axis, sizes) for axis in range(len(block))]
    return {"grid": [f"ceil_div({n}, {b})" for n, b in zip(names, block, strict=True)], "block": block}


def _bound(body: str, axis: int, sizes: list[str]) -> str:
    """The size that the index along an axis is compared with; the first size where none is."""
    for name in re.findall(rf"(\w+)\s*=\s*(?:\(\w+\)\s*)?get_global_id\s*\(\s*{axis}\s*\)", body):
        for bound in re.findall(rf"\b{name}\s*<\s*\(?\s*(\w+)", body):
            if bound in sizes:
                return str(bound)
    return sizes[0]
