"""The result bundle: result.json, report.html, trials.jsonl, tuned sources, and dispatch.py, which chooses
among them."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from pydantic import ValidationError
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult, TrialView
from warpsmith.report.boxes import reproduce_rows, use_rows
from warpsmith.report.dispatch_module import launcher_source
from warpsmith.report.evidence import counter_rows, evidence_rows
from warpsmith.report.formats import FILTERS
from warpsmith.report.job_charts import SCRIPTS, STYLES, content_policy, part, recorded_trials, safe_json
from warpsmith.report.parts import FOLDER as PARTS
from warpsmith.report.progress_curve import progress_svg
from warpsmith.report.shape_lookup import Lookup
from warpsmith.report.tables import (
    baseline_rows,
    comparison_rows,
    configuration_text,
    energy_rows,
    energy_words,
    has_gain,
    is_replayed,
    reason_lines,
)
from warpsmith.report.tuned_file import tuned_file, tuned_sources


def write_bundle(result: JobResult, trials: Sequence[TrialView], folder: Path) -> list[Path]:
    """Write the bundle; returns the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "result.json", folder / "report.html"]
    written[0].write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    written[1].write_text(report_html(result, trials), encoding="utf-8")
    names = _file_names(result)
    for entry in result.dispatch:
        if entry.workload in names:
            written.append(folder / names[entry.workload])
            written[-1].write_text(tuned_file(result, entry), encoding="utf-8")
    written.append(folder / "trials.jsonl")
    lines = [trial.model_dump_json(exclude_none=True) + "\n" for trial in trials]
    written[-1].write_text("".join(lines), encoding="utf-8")
    if _has_dispatch_module(result):
        written.append(folder / "dispatch.py")
        written[-1].write_text(launcher_source(Lookup(result), names), encoding="utf-8")
    return written


def read_result(folder: Path) -> JobResult:
    """The result of a bundle.

    Raises:
        InvalidInput: the folder has none that this version can read.
    """
    path = folder / "result.json"
    try:
        return JobResult.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as exc:
        words = "is no result of this version; name a folder that tune or result --out wrote"
        raise InvalidInput("", f"{path} {words}") from exc


def read_trials(folder: Path) -> list[TrialView]:
    """The trials of a bundle, in order; none if an older version wrote it.

    Raises:
        InvalidInput: this version cannot read them.
    """
    path = folder / "trials.jsonl"
    try:
        lines = path.read_bytes().splitlines()
        return [TrialView.model_validate_json(line) for line in lines]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as exc:
        words = "holds no trials of this version; take it away to read the result without them"
        raise InvalidInput("", f"{path} {words}") from exc


def report_html(result: JobResult, trials: Sequence[TrialView] = ()) -> str:
    """The report as one self-contained HTML page."""
    verified = result.speedup if result.comparisons else None
    lexer = get_lexer_by_name(result.job.kernel.backend.language.lexer)
    formatter = HtmlFormatter(cssclass="code")
    light, dark = HtmlFormatter(style="default"), HtmlFormatter(style="github-dark")
    recorded = recorded_trials(trials)
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            result=result,
            replayed=is_replayed(result),
            gained=has_gain(result),
            why=reason_lines(result),
            untuned=list(baseline_rows(result)),
            rows=list(comparison_rows(result)),
            use=list(use_rows(result, _file_names(result))),
            options=" ".join(result.job.kernel.options),
            dispatch_module=_has_dispatch_module(result),
            reproduce=list(reproduce_rows(result)),
            energies=list(energy_rows(result)),
            no_energy=energy_words(result),
            evidence=list(evidence_rows(result)),
            counters=list(counter_rows(result)),
            curve=Markup(progress_svg(trials, verified)),
            verified=verified,
            recorded=safe_json(recorded) if recorded.points.number else None,
            policy=content_policy(),
            part=part,
            style_files=STYLES,
            script_files=SCRIPTS,
            sources=tuned_sources(result),
            coloured=lambda text: Markup(highlight(text, lexer, formatter)),
            styles=Markup(
                light.get_style_defs(".code")
                + "@media (prefers-color-scheme: dark){"
                + dark.get_style_defs(".code")
                + "}"
            ),
            configuration_text=configuration_text,
        )
    )


@lru_cache
def _environment() -> Environment:
    """The templates of the report, and the parts that it shares with the pages of the service."""
    made = Environment(
        loader=FileSystemLoader([Path(__file__).parent / "templates", PARTS]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS
    return made


def _has_dispatch_module(result: JobResult) -> bool:
    if not result.job.kernel.backend.language.is_c_text:
        return False  # its program launches CUDA's and OpenCL's
    return result.limits is not None and any(e.source is not None for e in result.dispatch)


def _file_names(result: JobResult) -> dict[str, str]:
    """File names of the tuned sources, by workload; no two are the same."""
    ending = result.job.kernel.backend.language.ending
    names: dict[str, str] = {}
    for entry in result.dispatch:
        if entry.source is not None:
            stem = f"tuned-{_file_name(entry.workload)}"
            taken = f"{stem}{ending}" in names.values()
            names[entry.workload] = f"{stem}-{len(names) + 2}{ending}" if taken else f"{stem}{ending}"
    return names


def _file_name(workload: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in workload)[:80]
