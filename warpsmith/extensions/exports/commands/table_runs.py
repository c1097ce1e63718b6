"""Jobs of tables on a service, or on this machine: tuned into the engines' files, or rows checked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from warpsmith.cli.output import echo
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.space import Configuration
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.clients.commands.interrupts import Interrupted, interrupts
from warpsmith.extensions.clients.commands.out_folder import require_folder, result_kept
from warpsmith.extensions.clients.commands.service_commands import connect
from warpsmith.extensions.clients.commands.terminal_views import follow
from warpsmith.extensions.clients.python.embedded import embedded_service, submit_or_resume
from warpsmith.extensions.exports.tables.found_rows import FoundRow, found_rows, mean_speedup
from warpsmith.extensions.exports.wanted import ExportRequest
from warpsmith.extensions.exports.write import write_export
from warpsmith.http_models import JobResult, TrialView
from warpsmith.job_files.jobfile import parse_job
from warpsmith.report.safe_console import SafeConsole
from warpsmith.settings import settings
from warpsmith.system.temporary_folder import temporary_folder


@dataclass(frozen=True)
class TableJobs:
    """The jobs of one table."""

    form: str
    """Format of its export."""
    name: str
    """The file's name."""
    jobs: tuple[Mapping[str, Any], ...]
    """As `moe_jobs` makes them."""
    layers: int = 0
    """Layers of the model; 0: not known."""
    own: Mapping[int, Configuration] | None = None
    """Rows that are checked, by batch size; None: the table is missing."""


@dataclass(frozen=True)
class TableRun:
    """A run of the jobs of tables: its place, and the folder of its files."""

    url: str = ""
    """Address of a service; empty: this machine."""
    out: Path | None = None
    """Folder of the tables; None: rows are checked and nothing is written."""
    anew: bool = False
    """Tune again what was tuned before."""

    @temporary_folder()
    def of(self, tables: Sequence[TableJobs]) -> int:
        """Run all jobs at once, print a table of each layer's rows as it ends, and write the engines' files.

        Returns:
            0, or 1 if a job did not end well; 128 plus the number of a signal that ended it.

        Raises:
            InvalidInput: the folder can be none, or an engine could not read a row.
        """
        if self.out is not None:
            require_folder(self.out)
        current = settings()
        with interrupts() as signals:
            try:
                here = embedded_service(current.data_dir, current.api_key_text, signals.hurry_with)
                with connect(self.url) if self.url else here as client:
                    anew = self.anew or self.out is None
                    asked = [
                        [submit_or_resume(client, parse_job(job), anew=anew).id for job in t.jobs]
                        for t in tables
                    ]
                    shown = [self._shown(client, t, ids) for t, ids in zip(tables, asked, strict=True)]
                    return int(not all(shown))
            except Interrupted as exc:
                with suppress(OSError):  # the terminal may have ended
                    echo("interrupted; the same command goes on", err=True)
                return exc.exit_code

    def _shown(self, client: Client, table: TableJobs, ids: Sequence[str]) -> bool:
        """Follow the jobs of a table and show what they found; False if one did not end well."""
        ended: list[tuple[JobResult, Sequence[TrialView]]] = []
        for place, job_id in enumerate(ids):
            echo(f"{table.name}: job {place + 1} of {len(ids)}, {job_id}", err=True)
            end = follow(client, job_id)
            if end.state is JobState.DONE:
                ended.append((client.result(job_id), list(client.trials(job_id))))
            else:
                echo(f"{end.state.value}: {end.detail}", err=True)
        results = [result for result, _ in ended]
        rows = list(found_rows(results, [trial for _, trials in ended for trial in trials]))
        self._print(table, rows)
        # Without the rows of a class an engine would take others' for its sizes, and lose its default.
        if self.out is not None and len(ended) == len(ids):
            with result_kept(ids[0]):
                self._write(table, results, self.out)
        return len(ended) == len(ids)

    def _write(self, table: TableJobs, results: Sequence[JobResult], out: Path) -> None:
        wanted = ExportRequest(results[0], more=tuple(results[1:]))
        folder = out / table.name.removesuffix(".json")
        try:
            for path in write_export(wanted, table.form, folder):
                # Engines look for all tables in one folder.
                place = out / path.relative_to(folder) if path.name == table.name else path
                place.parent.mkdir(parents=True, exist_ok=True)
                echo(f"wrote {path.replace(place)}", err=True)
        except InvalidInput as exc:
            if exc.field:
                raise
            echo(f"{table.name}: {exc.message}", err=True)

    def _print(self, table: TableJobs, rows: Sequence[FoundRow]) -> None:
        echo(f"\n{self._title(table, rows)}")
        shown = Table(box=None, padding=(0, 2, 0, 0))
        heads = ("size", "default µs", *(("best µs", "speed-up (95 %)") if self.out else ("row", "it is")))
        for head in heads:
            shown.add_column(head, justify="right" if head != "it is" else "left")
        for row in rows:
            cells = _tuned_cells(row) if self.out else row.words_on(_own(table, row.size))
            us = "" if math.isnan(row.default_us) else f"{row.default_us:.1f}"
            shown.add_row(str(row.size), us, *cells)
        SafeConsole().print(shown)

    def _title(self, table: TableJobs, rows: Sequence[FoundRow]) -> str:
        if self.out is None:
            return table.name
        saved = "; ".join(_savings(table, rows))
        return f"{table.name}: {mean_speedup(rows):.2f}x over the default{f'; {saved}' if saved else ''}"


def _own(table: TableJobs, size: int) -> Configuration | None:
    return None if table.own is None else table.own[size]


def _tuned_cells(row: FoundRow) -> tuple[str, str]:
    found = row.comparison
    if found is None or row.speedup == 1.0:
        return "", "the default stays"
    interval = found.speedup
    return f"{found.best_us:.1f}", f"{interval.estimate:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _savings(table: TableJobs, rows: Sequence[FoundRow]) -> Iterator[str]:
    """Words on the time that all layers save at both ends of the table, in their first product alone."""
    for row in (rows[0], rows[-1]) if table.layers and rows else ():
        if row.comparison is not None and row.speedup > 1:
            saved = (row.comparison.baseline_us - row.comparison.best_us) * table.layers
            yield f"{saved:.0f} µs less in {table.layers} layers at {row.size} tokens"
