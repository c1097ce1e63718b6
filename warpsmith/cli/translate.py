"""`translate`: a CUDA job or source as HIP, compiled both ways and run where a device is present."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from warpsmith.cli.compile_check import Compiler
from warpsmith.cli.files import read_text, write_text
from warpsmith.cli.output import echo
from warpsmith.cli.translated_runs import TranslatedRuns, run_both
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job
from warpsmith.domain.outcome import Rejected
from warpsmith.errors import ChildDied
from warpsmith.hip.job_translation import translated_job
from warpsmith.hip.source_words import Refusal
from warpsmith.hip.translation import translated
from warpsmith.jobfile import JobFile
from warpsmith.sandbox.device_host import Probe, probe_devices
from warpsmith.settings import Settings
from warpsmith.temporary_folder import temporary_folder

ARCHITECTURE = "sm_90"
SOURCES = (".cu", ".cuh")
_NO_AMD = "not run on AMD hardware"
_WAVEFRONTS = "threads of a block along x must be a multiple of 64"


@dataclass(frozen=True)
class Translated:
    """What became of a file."""

    text: str = ""
    """The job file, or the source, for HIP; empty if something is refused."""
    refusals: Sequence[str] = ()
    disagreement: str = ""
    """How the two kernels differ, or why one of them does not compile."""
    last: str = ""
    """What was checked, and what was not."""
    notes: Sequence[str] = field(default=())

    @property
    def is_right(self) -> bool:
        """True if nothing is refused and nothing differs."""
        return not self.refusals and not self.disagreement


@temporary_folder()
def translate(
    path: Path,
    settings: Settings,
    include_dirs: Sequence[Path] = (),
    probe: Callable[[], Probe] = probe_devices,
) -> Translated:
    """Translate a job file, or a source by its ending.

    Raises:
        InvalidInput: the file is no CUDA job, or cannot be read.
    """
    if path.suffix in SOURCES:
        return _source(path)
    file = JobFile.read(path, include_dirs)
    job = file.job()
    found = translated_job(job)
    if found.job is None:
        return Translated(refusals=_placed(found.refusals, path, file), last=_refused(found.refusals))
    compiled, problem = _compiled({"CUDA": job, "HIP": found.job}, settings)
    text = _as_yaml(found.job)
    if problem:
        return Translated(text, disagreement=problem, last=f"{problem}; not run")
    device, lacking = _device(probe)
    if device is None:
        return Translated(text, last=f"{compiled}; not run: {lacking}")
    runs = run_both(job, found.job, not found.translation.has_atomics, device, settings)
    return Translated(text, disagreement=runs.problem, last=_in_words(runs, compiled, device))


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _as_yaml(job: Job) -> str:
    data = job.model_dump(mode="json", exclude_unset=True)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _source(path: Path) -> Translated:
    found = translated({"": read_text(path, "source")})
    if found.refusals:
        return Translated(refusals=_placed(found.refusals, path, None), last=_refused(found.refusals))
    notes = (_WAVEFRONTS,) if found.has_whole_warps else ()
    last = "translated; not compiled and not run: a source has no launch; give a job file that names it"
    return Translated(found.texts[""], last=last, notes=notes)


def _refused(refusals: Sequence[Refusal]) -> str:
    return f"not translated: {len(refusals)} words are outside the subset"


def _placed(refusals: Iterable[Refusal], path: Path, file: JobFile | None) -> list[str]:
    """Refusals with the file and line where each is read."""
    lines = []
    for found in refusals:
        named = (file.data.get("kernel") or {}).get("source_file") if file else path.name
        if found.line and found.file:
            place = f"{found.file}:{found.line}"
        elif found.line and named:
            place = f"{path.parent / str(named)}:{found.line}"
        else:
            inner = file.lines.of("kernel.source", found.line) if file and found.line else None
            line = inner if found.line else file.lines.of(found.word) if file else None
            place = f"{path}:{line}" if line else str(path)
        lines.append(f"{place}: {found.word}: {found.reason}")
    return lines


def _compiled(jobs: dict[str, Job], settings: Settings) -> tuple[str, str]:
    """That all jobs compile, in words, or else the first problem."""
    with Compiler(settings, ARCHITECTURE) as compiler:
        for name, job in jobs.items():
            found = compiler(job)
            if found is None:
                return "not compiled: no compiler for CUDA here", ""
            if isinstance(found, Rejected):
                return "", f"the {name} kernel does not compile for {ARCHITECTURE}: {found.reason}"
    return f"compiled for {ARCHITECTURE}", ""


def _device(probe: Callable[[], Probe]) -> tuple[DeviceInfo | None, str]:
    try:
        found = probe()
    except ChildDied:
        return None, "no device here"
    device = next((d for d in found.devices if d.backend is Backend.CUDA), None)
    return device, "no device here"


def _in_words(runs: TranslatedRuns, compiled: str, device: DeviceInfo) -> str:
    if runs.not_run:
        return f"{compiled}; not run: {runs.not_run}"
    if runs.problem:
        return f"{compiled}; differs on {device.name}: {runs.problem}; {_NO_AMD}"
    more = f", and on {runs.further} further inputs and shapes" if runs.further else ""
    return f"agrees on {runs.workloads} workloads on {device.name}{more}; {_NO_AMD}"


def show(found: Translated, out: Path | None) -> None:
    """Print refusals, write or print the text, and end with what was checked."""
    for line in found.refusals:
        echo(f"refused: {line}", err=True)
    if found.text and out is not None:
        write_text(out, found.text, "--out")
    elif found.text:
        echo(found.text)
    for note in found.notes:
        echo(f"note: {note}", err=True)
    echo(found.last, err=out is None)
