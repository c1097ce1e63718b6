"""What `init` makes of kernels as they lie in other people's repositories, with nothing filled in.

    python -m benchmarks.first_hour.door --mirrors FOLDER [--corpus NAME] [--project NAME] [--jobs N]

Every kernel of a corpus gets a job file by `init FILE --entry NAME`; its own text and the template that the
rules make of it are compiled (PoCL; NVRTC for sm_90). The sources are read from git at named commits; nothing
of them is kept. The kernels of a file are counted by a regular expression of this module and by no part of
the product.
"""

import argparse
import atexit
import io
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.first_hour.door_corpora import CORPORA, Project
from benchmarks.provenance import ROOT, record_folder
from warpsmith.commit import commit_name
from warpsmith.device_checks.absent_devices import any_cuda_device
from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.errors import WarpsmithError
from warpsmith.extensions.rules.templater import make_template
from warpsmith.extensions.scaffold.command.init import InitOptions
from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
from warpsmith.job_files.jobfile import JobFile
from warpsmith.settings import Settings

AMD = "gfx942"
"""Architecture for which HIP kernels are compiled as well; nothing runs on it."""
OUTCOMES = ("template compiles", "no rule applies, compiles", "does not compile", "not valid", "no job file")
_OPENCL = re.compile(
    r"\b(?:__kernel|kernel|KERNEL_FQ)\b[^;{}()]*?(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*"
    r"(?:[^;{}()]*?)\bvoid\s+(?:KERNEL_FA\s+)?(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*)*(\w+)\s*\(\s*([^)]*)"
)
_CUDA = re.compile(
    r"\b__global__\b(?:[^;{}()]|__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|\((?:[^()]|\([^()]*\))*\)\s*(?=void))*?"
    r"\bvoid\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\(\s*([^)]*)"
)

_SOURCES = frozenset(
    (
        ".cl",
        ".clh",
        ".opencl",
        ".cu",
        ".cuh",
        ".hip",
        ".h",
        ".hpp",
        ".hh",
        ".inl",
        ".inc",
        ".c",
        ".cc",
        ".cpp",
    )
)


@dataclass(frozen=True)
class Found:
    """One kernel of a project."""

    project: Project
    file: str
    name: str


def kernels_of(project: Project, mirrors: Path) -> list[Found]:
    """The kernels with arguments in the project's files, or those drawn by lot."""
    listed = _git(mirrors, project, "ls-tree", "-r", "--name-only", project.commit).decode().splitlines()
    pattern = _CUDA if project.backend.language.has_cuda_words else _OPENCL
    found: dict[Found, None] = {}
    for file in listed:
        if re.fullmatch(project.files, file):
            text = _git(mirrors, project, "show", f"{project.commit}:{file}").decode("latin-1")
            plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
            matches = (m for m in pattern.finditer(plain) if m.group(2).strip() not in ("", "void"))
            found |= dict.fromkeys(Found(project, file, m.group(1)) for m in matches)
    if not project.drawn or project.drawn >= len(found):
        return list(found)
    return random.Random(f"door {project.repository}").sample(list(found), project.drawn)


def looked_at(found: Found, checkout: Path) -> dict[str, Any]:
    """What became of one kernel: outcome, the first reason, and how many lines are left to a person."""
    row: dict[str, Any] = {"project": found.project.repository, "file": found.file, "kernel": found.name}
    row |= {"applications": found.project.is_application, "backend": found.project.backend.value}
    source = checkout / found.file
    try:
        row |= _looked_at(found, source, source.with_name("warpsmith-door.yaml"))
    except Exception as exc:  # noqa: BLE001 a traceback is a result here
        row |= {"outcome": OUTCOMES[4], "why": f"{type(exc).__name__}: {exc}"[:300]}
    if "why" in row:
        row["why"] = _without_paths(row["why"], checkout)
    return row


def _without_paths(text: str, checkout: Path) -> str:
    """A text without the places where this machine keeps the tree and its compilers."""
    return re.sub(r" ?<Spelling=[^>]*>?", "", text.replace(f"{checkout}/", ""))


@cache
def _compiler() -> JobCompiler:
    """One for a process, which ends with it."""
    compiler = JobCompiler(Settings(_env_file=None)).__enter__()
    atexit.register(compiler.__exit__)
    return compiler


def _looked_at(found: Found, source: Path, target: Path) -> dict[str, Any]:
    compiler = _compiler()
    try:
        text = tried_scaffold([source], target, InitOptions(found.name, found.project.backend), compiler)
    except WarpsmithError as exc:
        return {"outcome": OUTCOMES[4], "why": str(exc)[:300]}
    left = sum("TODO" in line for line in text.splitlines()[2:])
    try:
        job = JobFile.parsed(target, text).job()
    except (WarpsmithError, yaml.YAMLError) as exc:
        return {"outcome": OUTCOMES[3], "todo": left, "why": str(exc).splitlines()[0][:300]}
    row: dict[str, Any] = {"todo": left, "axes": len(job.kernel.launch.grid)}
    problem = compiler.problem(job)
    if problem != "":
        return row | {"outcome": OUTCOMES[2], "why": (problem or "no compiler")[:300]}
    devices = [d for d in compiler.devices if d.backend is found.project.backend]
    scope = (devices[0] if devices else any_cuda_device("sm_90")).scope()
    template = make_template(job, {}).template
    refused = compiler.of_template(template) if template.applied else None
    if isinstance(refused, Rejected):
        return row | {"outcome": OUTCOMES[2], "why": f"its template: {refused.reason}"[:300]}
    try:
        for workload in job.workloads:
            sizes = workload.scope()
            for extent in job.kernel.launch.grid:
                extent.evaluate({**scope, **sizes})
    except WarpsmithError as exc:
        return row | {"outcome": OUTCOMES[3], "why": str(exc)[:300]}
    rules = [a.rule for a in template.applied]
    if found.project.backend is Backend.HIP:
        row |= _for_amd(job, template)
    return row | {"outcome": OUTCOMES[0 if rules else 1], "rules": rules}


@cache
def _compiler_for_amd() -> JobCompiler:
    compiler = JobCompiler(Settings(_env_file=None), AMD).__enter__()
    atexit.register(compiler.__exit__)
    return compiler


def _for_amd(job: Job, template: Template) -> dict[str, Any]:
    """Whether a kernel and its template compile for AMD's device, and what the compiler says of them."""
    found = _compiler_for_amd()(job)
    if not isinstance(found, Compiled):
        return {AMD: f"does not compile: {found.reason if found else 'no compiler'}"[:300]}
    of_rules = _compiler_for_amd().of_template(template) if template.applied else found
    if not isinstance(of_rules, Compiled):
        return {AMD: f"its template does not compile: {of_rules.reason if of_rules else ''}"[:300]}
    kept = ("registers", "static_shared_bytes", "spill_bytes")
    return {AMD: {name: getattr(of_rules.facts, name) for name in kept}}


def checked_out(project: Project, mirrors: Path, folder: Path) -> Path:
    """The project's sources and headers at its commit, laid out once."""
    place = folder / project.repository.replace("/", "+")
    if place.exists():
        return place
    listed = _git(mirrors, project, "ls-tree", "-r", "--name-only", project.commit, *project.folders)
    paths = [p for p in listed.decode().splitlines() if Path(p).suffix in _SOURCES]
    asked = "".join(f"{project.commit}:{path}\n" for path in paths).encode()
    (place / ".git").mkdir(parents=True)
    answer = io.BytesIO(_git(mirrors, project, "cat-file", "--batch", asked=asked))
    for path in paths:
        head = answer.readline().split()
        if head[-1:] != [b"missing"]:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(answer.read(int(head[2])))
            answer.read(1)
    return place


def _git(mirrors: Path, project: Project, *arguments: str, asked: bytes = b"") -> bytes:
    directory = mirrors / project.repository.replace("/", "+") / "repo"
    command = ["git", "--git-dir", str(directory), *arguments]
    return subprocess.run(command, input=asked, stdout=subprocess.PIPE, check=True).stdout


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line for each project, and one for all."""
    lines = ["| project | kernels | " + " | ".join(OUTCOMES) + " | TODO, median |", "|---" * 8 + "|"]
    projects = list(dict.fromkeys(r["project"] for r in rows))
    groups = [(p, [r for r in rows if r["project"] == p]) for p in projects]
    groups.append(("applications", [r for r in rows if r["applications"]]))
    groups += [
        (b.value, [r for r in rows if r["backend"] == b.value])
        for b in (Backend.OPENCL, Backend.CUDA, Backend.HIP)
    ]
    for name, own in groups:
        if own:
            counts = Counter(r["outcome"] for r in own)
            left = [r["todo"] for r in own if "todo" in r]
            middle = f"{median(left):g}" if left else ""
            listed = " | ".join(str(counts[o]) for o in OUTCOMES)
            lines.append(f"| {name} | {len(own)} | {listed} | {middle} |")
    lines += _of_amd(rows)
    return "\n".join(lines) + "\n"


def _of_amd(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many of those that compile also do for AMD's device, and the reasons of the others."""
    tried = [r for r in rows if AMD in r]
    if not tried:
        return []
    lacking = [r for r in rows if r["outcome"] not in OUTCOMES[:2]]
    lines = ["", "What became of those that get no template:", ""]
    lines += [f"- `{r['kernel']}` ({r['file']}): {r['outcome']}: {r.get('why', '')}" for r in lacking]
    others = [r for r in tried if isinstance(r[AMD], str)]
    lines += ["", f"Compiled for {AMD} too, kernel and template: {len(tried) - len(others)} of {len(tried)}."]
    return [
        *lines,
        *("", "Of the others:", "") * bool(others),
        *(f"- `{r['kernel']}`: {r[AMD]}" for r in others),
    ]


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=Path, required=True, help="git directories, OWNER+NAME/repo")
    parser.add_argument("--corpus", choices=tuple(CORPORA), default="known")
    parser.add_argument("--project", default="", help="projects whose name holds this")
    parser.add_argument("--checkouts", type=Path, help="folder that keeps the trees; else a throw-away one")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--label", default="", help="word for the record's name, such as before")
    parser.add_argument("--out", type=record_folder, default=ROOT / "benchmarks" / "results" / "first-hour")
    arguments = parser.parse_args()
    projects = [p for p in CORPORA[arguments.corpus] if arguments.project in p.repository]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="warpsmith-door-trees-") as folder:
        trees = arguments.checkouts or Path(folder)
        with ProcessPoolExecutor(arguments.jobs) as pool:
            waiting = [
                pool.submit(looked_at, found, checked_out(project, arguments.mirrors, trees))
                for project in projects
                for found in kernels_of(project, arguments.mirrors)
            ]
            for job in waiting:
                rows.append(job.result())
                print(json.dumps(rows[-1]), flush=True)
    name = "-".join(w for w in ("door", arguments.corpus, arguments.label) if w)
    commits = "".join(f"- {p.repository} at {p.commit}, `{p.files}`\n" for p in projects)
    (arguments.out / f"{name}.md").write_text(
        f"# Kernels as they lie in their repositories: what `init` makes of them ({arguments.corpus})\n\n"
        f"Commit {commit_name()}; PoCL, and NVRTC for sm_90 without a GPU. Nothing was filled in.\n"
        f"`python -m benchmarks.first_hour.door --corpus {arguments.corpus}`\n\n{table(rows)}\n{commits}"
    )
    (arguments.out / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
