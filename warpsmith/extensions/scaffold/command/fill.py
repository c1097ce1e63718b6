"""`init` with a model: what a scaffold leaves open is asked, and the reply is checked by running it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpsmith.device_checks.compile_check import JobCompiler
from warpsmith.device_checks.launch_check import NOT_LAUNCHED, launch_check
from warpsmith.device_checks.reference_check import check_reference
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job, KernelReference, Workload
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.host_files import host_texts
from warpsmith.extensions.scaffold.command.init import InitOptions, found_source, job_of_text, scaffold_job
from warpsmith.extensions.scaffold.command.init_trials import tried_scaffold
from warpsmith.extensions.scaffold.extraction.taken_out import File, Pool, taken_out
from warpsmith.extensions.scaffold.filled import filled, open_lines
from warpsmith.job_checks.all_findings import known_findings, unfinished_lines
from warpsmith.job_files.filling_contracts import FillQuestion, FillReply
from warpsmith.job_files.jobfile import InvalidJob

_NEAR_ROWS = 40
_MOST_CHARACTERS = 60_000
"""Limit on the source, and on all host code, of a question."""
_MOST_PROBLEMS = 6
SAID = "as a model says"


@dataclass(frozen=True)
class Filled:
    """A job file with a reply's facts, and what became of them."""

    text: str
    problems: tuple[str, ...]
    """Errors to be told to whoever answered; with any, the text is of no use."""
    notes: tuple[str, ...] = ()
    """Checks that were made, and those that could not be."""


@dataclass
class Filler:
    """Everything that the question, and the check of a reply, need."""

    sources: Sequence[Path]
    target: Path
    wanted: InitOptions
    compiler: JobCompiler

    def question(self, earlier: FillReply | None = None, problems: Sequence[str] = ()) -> FillQuestion:
        """The question about the present guesses, with what was wrong with an earlier reply.

        Raises:
            InvalidInput: see `init.scaffold`.
        """
        text = tried_scaffold(self.sources, self.target, self.wanted, self.compiler)
        job = scaffold_job(text, self.sources, self.target, self.wanted)
        entry = job.kernel.entry if job else self.wanted.entry or ""
        return FillQuestion(
            job_file=text,
            source="" if re.search(r"^  source: \|", text, re.M) else self._source(entry),
            host=dict(self._host(entry)),
            compiler=(self.compiler.problem(job) or "") if job else "",
            is_launched=job is not None and bool(self._of(job)),
            earlier=earlier,
            problems=tuple(problems),
        )

    def check(self, reply: FillReply) -> Filled:
        """The job file with a reply, compiled, and launched with both small sizes if a device is there."""
        macros = (f"{name}={value}" for name, value in reply.macros.items())
        wanted = replace(self.wanted, defines=(*self.wanted.defines, *macros))
        wanted = replace(wanted, entry=reply.entry or wanted.entry)
        try:
            text = filled(tried_scaffold(self.sources, self.target, wanted, self.compiler), reply, SAID)
            left = [f"still open: {row}" for row in open_lines(text)]
            if left:
                return Filled(text, tuple(left[:_MOST_PROBLEMS]))
            return self._ran(text, self.job(text), reply)
        except InvalidJob as exc:
            return Filled("", tuple(str(f) for f in exc.findings[:_MOST_PROBLEMS]))
        except InvalidInput as exc:
            return Filled("", (str(exc),))

    def job(self, text: str) -> Job:
        """The job of a job file for these sources.

        Raises:
            InvalidJob: the fields that are wrong.
        """
        return job_of_text(text, self.sources, self.target, self.wanted)

    def _ran(self, text: str, job: Job, reply: FillReply) -> Filled:
        devices = self._of(job)
        problems = [str(f) for f in known_findings(job, self.compiler.settings, devices) if f.is_error]
        problem = "" if problems else self.compiler.problem(job)
        problems += [problem] if problem else []
        if problems:
            return Filled(text, tuple(problems[:_MOST_PROBLEMS]))
        notes = ["it compiles"] if problem == "" else ["nothing here compiles it"]
        first, second = reply.small_workloads()
        if first == second:
            problems.append("small: both sets of sizes are the same")
        for workload in (first, second):
            alone = job.model_copy(update={"workloads": (workload,)})
            problems += self._wrong(alone, workload, devices)
            notes.append(f"{'launched' if devices else 'not launched here'} with {workload.key}")
        if not problems and isinstance(job.reference, KernelReference):
            notes.append("no reference but the kernel itself")
        return Filled(text, tuple(problems[:_MOST_PROBLEMS]), (*notes, *reply.notes))

    def _wrong(self, job: Job, workload: Workload, devices: Sequence[DeviceInfo]) -> list[str]:
        """Errors that a launch with small sizes shows; without a device, those of the reference alone.

        A device that is there and does not launch is wrong as well: the job file says that it did.
        """
        if devices:
            found = list(launch_check(job, devices[0], self.compiler.settings))
        else:
            checked = check_reference(job, {}).finding
            found = [checked] if checked else []
        wrong = [f for f in found if f.is_error or f.message.startswith(NOT_LAUNCHED)]
        return [f"with the small sizes {workload.key}: {f}" for f in wrong]

    def _of(self, job: Job) -> list[DeviceInfo]:
        return [d for d in self.compiler.devices if d.backend is job.kernel.backend]

    def _source(self, entry: str) -> str:
        """The kernel with what it reaches in its files."""
        found = found_source(self.sources, self.target, self.wanted)
        files = [File(name, text) for name, text in reversed(tuple(found.headers.files.items()))]
        pool = Pool((*files, File(found.shown, found.text)), found.dialect)
        taken = taken_out(pool, entry.partition("<")[0].rpartition("::")[2])
        return (taken.text if taken else found.text)[:_MOST_CHARACTERS]

    def _host(self, entry: str) -> Iterator[tuple[str, str]]:
        """Rows near those that name the kernel, of its own file and of those beside it."""
        found = found_source(self.sources, self.target, self.wanted)
        name = entry.partition("<")[0].rpartition("::")[2]
        left = _MOST_CHARACTERS
        for file, text in host_texts(self.sources, found, name).items():
            shown = "\n".join(_near(text.split("\n"), re.compile(rf"\b{re.escape(name)}\b")))[:left]
            left -= len(shown)
            if shown:
                yield file, shown


def _near(rows: Sequence[str], word: re.Pattern[str]) -> Iterator[str]:
    kept = {
        n
        for at, row in enumerate(rows)
        if word.search(row)
        for n in range(max(0, at - _NEAR_ROWS), min(len(rows), at + _NEAR_ROWS + 1))
    }
    last = -1
    for n in sorted(kept):
        if n > last + 1:
            yield f"... (line {n + 1})"
        yield rows[n]
        last = n


def with_remarks(text: str, notes: Sequence[str], by: str) -> str:
    """The job file with who filled it in, and what was checked."""
    said = " ".join("; ".join(notes).split())
    first, marks, rest = text.split("\n", 2)
    kept = [marks] if next(unfinished_lines(rest), None) else []
    return "\n".join([first, f"# Filled in by {by}: {said}.", *kept, rest])
