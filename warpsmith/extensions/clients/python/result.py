"""The result of a job, as a program uses it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, overload

from rich.console import Console

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import Comparison
from warpsmith.extensions.clients.python.trial_records import Record, frame, trial_records
from warpsmith.extensions.clients.python.tuned_kernel import TunedKernel, tuned_kernel
from warpsmith.extensions.clients.python.workload_results import WorkloadResult, html_table, workload_results
from warpsmith.http_models import JobResult, TrialView
from warpsmith.report.bundle import read_result, read_trials, report_html, write_bundle
from warpsmith.report.tables import comparison_table, has_gain, reason_lines


class Result:
    """Findings of a job that has ended: verified speed-ups, the kernel of each shape, every trial.

    A job that gained nothing, failed or was cancelled has a result, too: `state`, `reason` and `has_gain` say
    so.

    Args:
        result: the evidence, as the service gives it.
        trials: the trials of the job, in order.
    """

    def __init__(self, result: JobResult, trials: Sequence[TrialView] = ()) -> None:
        self.evidence = result
        """All that the service says of the job."""
        self._trials = tuple(trials)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The result that `save`, `warpsmith tune` or `warpsmith result --out` wrote.

        A folder that an older version wrote has no trials.

        Raises:
            InvalidInput: the folder has no result that this version can read.
        """
        return cls(read_result(Path(folder)), read_trials(Path(folder)))

    @property
    def id(self) -> str:
        """Id of the job."""
        return self.evidence.id

    @property
    def job(self) -> Job:
        """The job as it was submitted."""
        return self.evidence.job

    @property
    def state(self) -> JobState:
        """State in which the job ended: done, failed or cancelled."""
        return self.evidence.state

    @property
    def reason(self) -> str:
        """Reason of the job's end, in a sentence; empty for a cancelled job."""
        return self.evidence.reason.sentence if self.evidence.reason else self.evidence.detail

    @property
    def speedup(self) -> float | None:
        """Weighted geometric mean of the verified speed-ups over all workloads.

        A workload that keeps the user's own kernel counts as 1. None: nothing was verified.
        """
        return self.evidence.speedup

    @property
    def has_gain(self) -> bool:
        """True if a tuned kernel serves at least one workload."""
        return has_gain(self.evidence)

    @property
    def workloads(self) -> list[WorkloadResult]:
        """Times, speed-up with its interval, verdict and configuration of each workload, in their order."""
        return workload_results(self.evidence)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The verified comparisons of winners with the user's kernel, with all that was measured."""
        return self.evidence.comparisons

    @property
    def trials(self) -> list[Record]:
        """The trials, one dict each, in order; all have the same keys.

        `number`, `round`, `candidate`, `state`, `outcome` (`measured`, `cut_short`, `rejected` or None),
        `speedup` as the search saw it (not verified), `time_us.WORKLOAD` in microseconds, `stage` and
        `reason` of a rejection, `seconds`, `reused`, `parameter.NAME`.
        """
        return trial_records(self.job, self._trials)

    def frame(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """The trials as a data frame, with the columns of `trials`.

        Args:
            library: the library of the frame. None: pandas, or polars if only that is installed.

        Raises:
            InvalidInput: there is no such library.
            Unavailable: it is not installed.
        """
        return frame(self.trials, library)

    def kernel_for(self, **dimensions: int) -> TunedKernel:
        """The kernel to launch for a shape: source, entry, grid, block, bytes of shared memory.

        A shape between the workloads is served by a tuned kernel only if that was faster on all workloads
        around it, as in the bundle's `dispatch.py`. The user's own kernel serves all other shapes.

        Args:
            dimensions: every dimension of the job, by name.

        Raises:
            InvalidInput: a dimension is unknown, missing or no whole number above 0; or the job ended before
                a device was known, so that no launch can be computed.
        """
        return tuned_kernel(self.evidence, dimensions)

    @overload
    def report(self) -> str: ...

    @overload
    def report(self, path: str | Path) -> Path: ...

    def report(self, path: str | Path | None = None) -> str | Path:
        """The report, one self-contained HTML page.

        Args:
            path: file to write. None: the text is returned.

        Returns:
            The text, or the path of the file.
        """
        text = report_html(self.evidence, self._trials)
        if path is None:
            return text
        file = Path(path)
        file.write_text(text, encoding="utf-8")
        return file

    def save(self, folder: str | Path) -> list[Path]:
        """Write the bundle: report, evidence, trials, tuned sources, `dispatch.py`.

        Args:
            folder: made if it does not exist; files of the same names in it are replaced.

        Returns:
            The paths written.
        """
        return write_bundle(self.evidence, self._trials, Path(folder))

    def export(
        self, form: str, folder: str | Path, name: str = "", table: Mapping[str, str] | None = None
    ) -> list[Path]:
        """Write an export and its evidence; returns the paths written.

        Args:
            form: `torch`, `tvm-ffi`, `cpp`, `c`, `hf-kernel`, `sglang`, `flashinfer-bench`, `t4`, or a table
                for an engine: `vllm-config`, `sglang-config` or `hf-config`.
            name: of the function; by default that of the entry.
            table: options of an engine's table, by key (`{"E": "8"}`).

        Raises:
            InvalidInput: there is no such format, or it cannot hold the job.
        """
        # Loaded when it is called: it compiles, and who reads results alone needs no compiler.
        write, wanted = (import_module(f"warpsmith.extensions.exports.{n}") for n in ("write", "wanted"))
        paths: list[Path] = write.write_export(
            wanted.ExportRequest(self.evidence, self._trials, name, table=table or {}), form, Path(folder)
        )
        return paths

    def _headline(self) -> str:
        if self.speedup is None:
            return f"{self.job.name}: {self.state.value}, nothing verified"
        gain = f"{self.speedup:.2f}x" if self.has_gain else "no gain"
        return f"{self.job.name}: {self.state.value}, {gain} over {len(self.job.workloads)} workloads"

    def __repr__(self) -> str:
        return f"<Result {self._headline()}, job {self.id}>"

    def __str__(self) -> str:
        console = Console(width=80, color_system=None, force_terminal=False)
        with console.capture() as capture:
            console.print(comparison_table(self.evidence))
        lines = [line.rstrip() for line in capture.get().splitlines()]
        return "\n".join([*lines, *reason_lines(self.evidence)]).strip()

    def _repr_html_(self) -> str:
        return html_table(self._headline(), self.workloads, reason_lines(self.evidence))
