"""The corpus of kernels that must be refused or accepted, read from files that say what they expect.

A file starts with comment lines `// field: value`. One file may hold several cases: each `// variant:`
line names one, with the macros it defines (`NAME=value`) and the fields it changes (`field=value`).
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from testbed.example_jobs import load_example
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import CacheState, Job, KernelReference, Tolerance, Workload
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.template import Template
from warpsmith.job_files.jobfile import load_job

HERE = Path(__file__).parent
KINDS = ("cheats", "mutants", "honest")
EXPECTED = ("rejected", "no gain", "accepted")
"""`no gain`: the result may be right, but no workload may be called faster."""

WORKLOADS: dict[str, tuple[dict[str, int], ...]] = {
    "silu_and_mul": ({"tokens": 16, "hidden": 1024}, {"tokens": 5, "hidden": 131}),
    "fused_add_rmsnorm": ({"tokens": 16, "hidden": 1024}, {"tokens": 5, "hidden": 131}),
    "softmax": ({"rows": 16, "columns": 1024}, {"rows": 5, "columns": 131}),
    "merge_attn_states": ({"tokens": 16, "heads": 8, "dim": 128}, {"tokens": 5, "heads": 3, "dim": 61}),
    "matmul": ({"m": 64, "n": 64, "k": 96}, {"m": 29, "n": 35, "k": 19}),
    "stencil": ({"height": 96, "width": 128}, {"height": 19, "width": 37}),
    "padded_matmul": ({"m": 64, "n": 64, "k": 96}, {"m": 29, "n": 35, "k": 19}),
    "ragged_silu": ({"rows": 16, "columns": 1024}, {"rows": 5, "columns": 131}),
    "random_walk": ({"rows": 4, "n": 192}, {"rows": 3, "n": 160}),
    "ranked_permutation": ({"rows": 4, "n": 2048}, {"rows": 3, "n": 1031}),
    "ranked_distinct": ({"rows": 4, "n": 2048}, {"rows": 3, "n": 1031}),
    "tallied": ({"n": 65536},),
    "segmented": ({"rows": 4, "n": 2048, "segments": 999}, {"rows": 3, "n": 1031, "segments": 509}),
}
STATES = ("held", "open", "varies")
"""`held`: the verdict is what is expected. `open`: today it is not, and that is a finding. `varies`: by
chance the one or the other, since inputs are drawn afresh; a finding as well."""
_HELPER = re.compile(r"^((?:float|int|void) \w+\([^;]*\{)", re.MULTILINE)
_FIELD = re.compile(r"^// (\w+): (.*)$")
_WORDS = {
    "status",
    "layer",
    "expect",
    "task",
    "options",
    "grid",
    "block",
    "shared",
    "entry",
    "tolerance",
    "backends",
    "workloads",
    "reference",
    "times",
    "cache",
    "non_finite",
}


@dataclass(frozen=True)
class Case:
    """One kernel of the corpus."""

    name: str
    """`folder/file` and, where the file has several, `:variant`."""
    kind: str
    task: str
    exploit: str
    """An id of the list of exploits (D1 to D27); empty for honest kernels."""
    expect: str
    status: str
    """One of `STATES`; the back ends on which it is `open` or `varies` may follow, else it is so on all."""
    layer: str
    """Which layer catches it; empty for what is accepted."""
    backends: tuple[Backend, ...]
    source: str
    defines: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    shared: str = ""
    entry: str = ""
    workloads: tuple[dict[str, int], ...] = ()
    """In place of the task's."""
    reference: str = "numpy"
    """`kernel`: the job has no other reference than its own kernel."""
    times: str = ""
    """How the process that runs it shortens the times that it reports: a word of `forged.FORGERIES`."""
    cache: str = "cold"
    """Cache state of the job's objective."""
    non_finite: str = ""
    """`yes`: the job says that its inputs may hold not-a-number and infinity."""
    tolerance: tuple[float, float] | None = None
    """Of the whole job: relative and absolute, in place of the example's."""

    def status_on(self, backend: Backend) -> str:
        """One of `STATES`."""
        state, *where = self.status.split()
        return state if state == "held" or not where or backend.value in where else "held"

    def job(self, backend: Backend) -> Job:
        """The task: baseline, reference, workloads."""
        job = task_job(self.task, backend)
        if self.workloads:
            job = job.model_copy(update={"workloads": tuple(Workload(dimensions=d) for d in self.workloads)})
        if self.reference == "kernel":
            job = job.model_copy(update={"reference": KernelReference()})
        if self.non_finite:
            job = job.model_copy(update={"non_finite": self.non_finite == "yes"})
        if self.cache != job.objective.cache.value:
            hot = job.objective.model_copy(update={"cache": CacheState(self.cache)})
            job = job.model_copy(update={"objective": hot})
        if self.tolerance is None:
            return job
        rtol, atol = self.tolerance
        names = [a.name for a in job.kernel.declared if a.is_mutated]
        return job.model_copy(update={"tolerances": dict.fromkeys(names, Tolerance(rtol=rtol, atol=atol))})

    def template(self, backend: Backend) -> Template:
        """The candidate, as an agent would propose it."""
        kernel = task_job(self.task, backend).kernel
        launch = kernel.launch.model_dump()
        for name in ("grid", "block"):
            if getattr(self, name):
                launch[name] = getattr(self, name)
        if self.shared:
            launch["shared_bytes"] = self.shared
        macros = "".join(f"#define {name} {value}\n" for name, value in self.defines.items())
        fields = kernel.model_dump() | {
            "source": in_language(backend, macros + self.source),
            "entry": self.entry or kernel.entry,
            "options": self._options(backend) or kernel.options,
            "launch": launch,
        }
        return Template(kernel=Kernel.model_validate(fields))

    def _options(self, backend: Backend) -> tuple[str, ...]:
        # What a language version is for in OpenCL, CUDA has anyway.
        dropped = "-cl-" if backend is Backend.CUDA else None
        return tuple(o for o in self.options if dropped is None or not o.startswith(dropped))


def in_language(backend: Backend, text: str) -> str:
    """`text` for that back end: CUDA takes OpenCL's words through a prelude."""
    if backend is Backend.OPENCL or "__global__" in text:
        return text
    # A function of OpenCL C runs on the device; CUDA wants to be told.
    text = _HELPER.sub(r"__device__ \1", text)
    return (HERE / "opencl_words.cuh").read_text() + "\n" + text


@cache
def task_job(task: str, backend: Backend) -> Job:
    """The OpenCL example of that name, or what lies in `tasks`, on small workloads, for either back end."""
    own = HERE / "tasks" / f"{task}.yaml"
    job = load_job(own) if own.exists() else load_example(task, "opencl")
    kernel = job.kernel.model_dump() | {"backend": backend, "source": in_language(backend, job.kernel.text)}
    workloads = [{"dimensions": d} for d in WORKLOADS[task]]
    return Job.model_validate(job.model_dump() | {"kernel": kernel, "workloads": workloads})


def load(kind: str) -> list[Case]:
    """All cases of one folder, by name."""
    found = []
    for path in sorted((HERE / kind).iterdir()):
        if path.suffix in (".cl", ".cu"):
            found += _cases(kind, path)
    return found


def _cases(kind: str, path: Path) -> list[Case]:
    fields, variants = _header(path)
    base = Case(
        name=f"{kind}/{path.name}",
        kind=kind,
        task=fields["task"],
        exploit=fields.get("exploit", ""),
        expect=fields["expect"],
        status=fields.get("status", "held"),
        layer=fields.get("layer", ""),
        backends=(Backend.CUDA,) if path.suffix == ".cu" else (Backend.OPENCL, Backend.CUDA),
        source=path.read_text(),
    )
    base = _changed(base, {k: v for k, v in fields.items() if k in _WORDS})
    return [_variant(base, line) for line in variants] or [base]


def _header(path: Path) -> tuple[dict[str, str], list[str]]:
    fields: dict[str, str] = {}
    variants: list[str] = []
    for line in path.read_text().splitlines():
        found = _FIELD.match(line)
        if found is None:
            break
        if found[1] == "variant":
            variants.append(found[2])
        else:
            fields[found[1]] = found[2].strip()
    for needed in ("task", "how", "expect"):
        if needed not in fields:
            raise ValueError(f"{path.name}: the header has no {needed}")
    return fields, variants


def _variant(base: Case, line: str) -> Case:
    name, *settings = line.split(" ; ")
    pairs = dict(s.strip().split("=", 1) for s in settings)
    defines = {k: v for k, v in pairs.items() if k not in _WORDS}
    changed = _changed(base, {k: v for k, v in pairs.items() if k in _WORDS})
    return replace(changed, name=f"{base.name}:{name.strip()}", defines=defines)


def _changed(case: Case, fields: dict[str, str]) -> Case:
    values: dict[str, Any] = dict(fields)
    for name in ("options", "grid", "block"):
        if name in fields:
            values[name] = tuple(fields[name].split(None if name == "options" else " , "))
    if "backends" in fields:
        values["backends"] = tuple(Backend(word) for word in fields["backends"].split())
    if "workloads" in fields:
        values["workloads"] = tuple(_dimensions(words) for words in fields["workloads"].split(" , "))
    if "tolerance" in fields:
        rtol, atol = fields["tolerance"].split()
        values["tolerance"] = (float(rtol), float(atol))
    made = replace(case, **values)
    if made.expect not in EXPECTED or made.status.split()[0] not in STATES:
        raise ValueError(f"{made.name}: {made.expect!r}, {made.status!r}")
    return made


def _dimensions(words: str) -> dict[str, int]:
    return {name: int(value) for name, _, value in (word.partition(":") for word in words.split())}
