"""The file of a tuned source: what it is, where it was measured and how it is launched, then the source."""

from collections.abc import Iterator
from dataclasses import dataclass

from warpsmith.http_models import DispatchEntry, DispatchLaunch, JobResult
from warpsmith.report.diff_rows import DiffRow, diff_rows
from warpsmith.report.tables import configuration_text
from warpsmith.system.printable import one_line


@dataclass(frozen=True)
class TunedSource:
    """A tuned source with the workloads that it serves."""

    workloads: tuple[str, ...]
    configuration: str
    launch: str
    text: str
    """As `tuned_file` has it."""
    diff: list[DiffRow]
    """Lines in which the source differs from the user's kernel."""


def tuned_sources(result: JobResult) -> list[TunedSource]:
    """The tuned sources of a result, each once; two configurations may differ in their launches alone."""
    served: dict[str, list[DispatchEntry]] = {}
    for entry in result.dispatch:
        name = f"{entry.candidate} {sorted((entry.configuration or {}).items())}"
        served.setdefault(name, []).append(entry)
    return [
        TunedSource(
            tuple(entry.workload for entry in entries),
            configuration_text(first.configuration),
            launch_text(first),
            tuned_file(result, first),
            diff_rows(result.job.kernel.text, first.source),
        )
        for entries in served.values()
        if (first := entries[0]).source is not None
    ]


def tuned_file(result: JobResult, entry: DispatchEntry) -> str:
    """The text of the file; empty if the baseline is kept."""
    if entry.source is None:
        return ""
    mark = result.job.kernel.backend.language.comment
    return "".join(f"{mark} {_harmless(line)}\n" for line in _lines(result, entry)) + "\n" + entry.source


def launch_text(entry: DispatchEntry) -> str:
    """Grid, block and memory of each launch of a tuned kernel."""
    texts = [f"{s.entry}: {_one_launch(s)}" for s in entry.launches] or [_one_launch(entry)]
    if entry.scratch_bytes:
        texts.append(f"scratch {', '.join(str(n) for n in entry.scratch_bytes)} B")
    return "; ".join(texts)


def _lines(result: JobResult, entry: DispatchEntry) -> Iterator[str]:
    when = f", {result.finished_at:%Y-%m-%d}" if result.finished_at else ""
    yield f"{result.job.name}, tuned by Warpsmith {result.warpsmith_version}: job {result.id}{when}."
    yield f"Device: {result.device}, driver {result.driver}."
    yield f"Workload: {entry.workload}{_speedup(result, entry.workload)}."
    yield f"Launch: {launch_text(entry)}."
    yield f"Configuration: {configuration_text(entry.configuration)}."
    if result.job.kernel.options:
        yield f"Options: {' '.join(result.job.kernel.options)}"


def _speedup(result: JobResult, workload: str) -> str:
    found = next((c.speedup for c in result.comparisons if c.workload == workload), None)
    if found is None:
        return ""
    return f", {found.estimate:.2f}x [{found.low:.2f}, {found.high:.2f}] of the original's speed"


def _one_launch(entry: DispatchEntry | DispatchLaunch) -> str:
    text = f"grid {entry.grid}, block {entry.block}, shared {entry.shared_bytes} B"
    if entry.local_bytes:
        text += f", local arguments {', '.join(str(n) for n in entry.local_bytes)} B"
    if entry.launch.attributes_text:
        text += f", {entry.launch.attributes_text}"
    return text


def _harmless(text: str) -> str:
    """Text for a comment that ends with its line: no line end, no backslash, no trigraph of one."""
    return one_line(text.replace("??/", "?/")).replace("\\", "/")
