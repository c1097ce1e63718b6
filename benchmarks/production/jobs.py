"""Jobs of the kernels in `kernels/*.yaml`: their text out of checkouts, everything else from the description.

    python -m benchmarks.production.jobs --mirrors FOLDER --out DIR [--seconds S] [--jobs NAMES]

Writes one file a job, with the headers that its source includes, so that DIR needs nothing else. `--kernels`
names another folder of descriptions, such as `benchmarks/agents/kernels`.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.opencl_corpus.sources import Project
from benchmarks.production.sources import FOR_AGENTS, PROJECTS, fetch_all
from benchmarks.provenance import record_folder
from warpsmith.domain.jobs.job import Job
from warpsmith.extensions.scaffold.reading.file_declarations import taken
from warpsmith.job_files.collected_headers import headers_of
from warpsmith.job_files.jobfile import parse_job
from warpsmith.job_files.yaml_data import read_yaml

DESCRIPTIONS = Path(__file__).parent / "kernels"
_OURS = ("name", "project", "backend", "entry", "include", "options", "before", "take")
_KERNEL = ("arguments", "buffers", "launch")


@dataclass(frozen=True)
class Made:
    """A kernel as a job, or the reason why it cannot be one here."""

    name: str
    job: Job | None
    why_not: str = ""


def descriptions(folder: Path = DESCRIPTIONS) -> list[dict[str, Any]]:
    """All descriptions of a folder, or of one file, by project and in the order of their files."""
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else [folder]
    return [entry for path in files for entry in read_yaml(path.read_text())]


def projects_of(folder: Path) -> list[Project]:
    """The projects that a folder's descriptions take something from."""
    named = {str(entry["project"]) for entry in descriptions(folder)}
    named |= {name.split("/", 1)[0] for entry in descriptions(folder) for name in entry.get("include", ())}
    return [p for p in (*PROJECTS, *FOR_AGENTS) if p.name in named]


def made_jobs(
    roots: Mapping[str, Path], seconds: float, only: str = "", folder: Path = DESCRIPTIONS
) -> Iterator[Made]:
    """Every described kernel as a job.

    Args:
        roots: checkouts by project.
        seconds: budget of each job.
        only: see `is_wanted`.
    """
    for entry in descriptions(folder):
        name = str(entry["name"])
        if not is_wanted(name, only):
            continue
        try:
            yield Made(name, as_job(entry, roots, seconds))
        except (OSError, LookupError, ValueError) as exc:
            yield Made(name, None, f"{type(exc).__name__}: {exc}")


def is_wanted(name: str, only: str) -> bool:
    """True if one of the names or patterns (`fi_*`), separated by commas, matches; also if there are none."""
    patterns = [p for p in only.split(",") if p]
    return not patterns or any(fnmatchcase(name, p) for p in patterns)


def as_job(entry: Mapping[str, Any], roots: Mapping[str, Path], seconds: float) -> Job:
    """The job of one description.

    Raises:
        InvalidInput: the description makes no valid job.
        LookupError: a file lacks a declaration that is to be taken.
        OSError: a file does not exist.
    """
    root = roots[entry["project"]]
    pieces = [entry.get("before", "")]
    for file, names in entry["take"].items():
        pieces.append(taken((root / file).read_text(errors="replace"), [str(n) for n in names]))
    source = "\n".join(pieces)
    folders = [roots[name.split("/", 1)[0]] / name.split("/", 1)[1] for name in entry.get("include", ())]
    kernel = {
        "backend": entry.get("backend", "cuda"),
        "source": source,
        "entry": entry["entry"],
        "options": entry.get("options", ["-std=c++17"]),
    } | {k: entry[k] for k in _KERNEL if k in entry}
    if folders:
        # The first folder stands for the source's own, which it does not have.
        sent = headers_of(source, folders[0], folders)
        kernel |= {"files": dict(sent.files), "include_dirs": list(sent.include_dirs)}
    rest = {k: v for k, v in entry.items() if k not in (*_OURS, *_KERNEL)}
    data = {"name": entry["name"], "kernel": kernel, **rest}
    data["workloads"] = [w if "dimensions" in w else {"dimensions": w} for w in entry["workloads"]]
    data["reference"] = {"kind": "numpy", "source": entry["reference"]}
    data["budget"] = {"rounds": 1, "trials": 400, "seconds": seconds}
    data["labels"] = {"project": entry["project"]}
    return parse_job(data)


def write_jobs(made: Iterator[Made], out: Path) -> int:
    """Write the files; how many kernels could not be made into jobs."""
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for one in made:
        failed += one.job is None
        print(f"{one.name}: {one.why_not or 'written'}", flush=True)
        if one.job is not None:
            (out / f"{one.name}.json").write_text(one.job.model_dump_json(exclude_unset=True, indent=1))
    return failed


def sources_of_record() -> dict[str, str]:
    """Repository and commit by project, for records."""
    return {p.name: f"{p.repository}@{p.commit}" for p in PROJECTS}


def checkout_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the projects' sources come from."""
    parser.add_argument("--checkouts", type=Path, default=Path("/tmp/warpsmith-production"))
    parser.add_argument("--mirrors", type=Path, help="folder of git directories, OWNER+NAME/repo")


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    checkout_options(parser)
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--jobs", default="", help="names or patterns (fi_*), separated by commas")
    parser.add_argument("--kernels", type=Path, default=DESCRIPTIONS, help="folder of descriptions")
    options = parser.parse_args()
    roots = fetch_all(options.checkouts, options.mirrors, projects_of(options.kernels))
    made = made_jobs(roots, options.seconds, options.jobs, options.kernels)
    return int(write_jobs(made, options.out) > 0)


if __name__ == "__main__":
    sys.exit(main())
