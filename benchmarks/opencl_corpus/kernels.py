"""Every kernel of a project as a job, by what `init` reads out of its source alone."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.opencl_corpus.sources import Project
from warpsmith.domain.job import Job
from warpsmith.errors import InvalidInput
from warpsmith.jobfile import parse_job
from warpsmith.rewrite.reader.kernels.kernel_definitions import Dialect, find_kernels
from warpsmith.rewrite.skeleton.job_file import job_skeleton

EXTENT, EXACT = 36, 64
"""Value of every size argument: no multiple of a block where the kernel guards its indices; else one."""

LAUNCHES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "launches.yaml").read_text()
)
"""What host code fixes, by kernel."""
NOTHING: Mapping[str, Any] = {}


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
                own = alone(source, kernel.name) if project.alone else source
                job = as_job(own, kernel.name, kernel.body, project.options, LAUNCHES.get(name, {}))
                yield Found(name, job)
            except InvalidInput as exc:
                yield Found(name, None, str(exc).splitlines()[0])


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


def as_job(
    source: str, entry: str, body: str, options: tuple[str, ...], host: Mapping[str, Any] = NOTHING
) -> Job:
    """A job for one kernel: the skeleton of `init`, with invented sizes that its indices stay within.

    Args:
        host: what its host code fixes: `grid`, `block`, and elements of `local` arguments.

    Raises:
        InvalidInput: the form has no word for one of its arguments.
    """
    data: dict[str, Any] = yaml.safe_load(job_skeleton(source, "kernel.cl", Dialect.OPENCL, entry))
    kernel = data["kernel"]
    del kernel["source_file"]
    kernel["source"] = source
    kernel["options"] = list(options)
    sizes = data["workloads"][0]["dimensions"]
    block = _block(body, kernel["launch"]["block"])
    bounds = [_bound(body, axis, list(sizes)) for axis in range(len(block))]
    extent = EXTENT if all(bounds) else EXACT
    grid = [f"ceil_div({bound or next(iter(sizes))}, {b})" for bound, b in zip(bounds, block, strict=True)]
    kernel["launch"] = {"grid": host.get("grid", grid), "block": host.get("block", block)}
    for argument in kernel["arguments"]:
        # An argument of a struct has fields instead of a type.
        if argument.get("dtype") == "TODO":
            argument["dtype"] = "float32"
        if argument["name"] in host.get("local", {}):
            argument["shape"] = [host["local"][argument["name"]]]
        if argument["role"] in ("input", "inout", "output"):
            # Enough for three sizes multiplied.
            argument["shape"] = [extent**3]
            whole = not argument.get("dtype", "float").startswith(("float", "bfloat"))
            if whole and argument["role"] != "output":
                argument["draw"] = {"distribution": "integers", "low": 0, "high": extent}
    data["workloads"] = [{"dimensions": dict.fromkeys(sizes, extent)}]
    return parse_job(data)


def _block(body: str, block: list[int]) -> list[int]:
    """As many axes as the kernel asks for ids of; the block that the source itself names, if any."""
    asked = re.findall(r"get_(?:global|local)_id\s*\(\s*([012])\s*\)", body)
    axes = 1 + max((int(axis) for axis in asked), default=0)
    return block if len(block) >= axes else {2: [16, 4], 3: [8, 4, 2]}[axes]


def _bound(body: str, axis: int, sizes: list[str]) -> str:
    """The size that the index along an axis is compared with; empty where none is."""
    ids = rf"\(?\s*get_global_id\s*\(\s*{axis}\s*\)"
    if axis == 0:
        ids += r"|\(?\s*\(?get_group_id\(0\)"
    for name in re.findall(rf"(\w+)\s*=\s*(?:\(\w+\)\s*)?(?:{ids})", body):
        for bound in re.findall(rf"\b{name}\s*(?:<|>=)\s*\(?\s*(\w+)", body):
            if bound in sizes:
                return str(bound)
    return ""
