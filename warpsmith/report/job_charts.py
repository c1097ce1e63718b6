"""Charts of a report: trials as JSON, and scripts, with a content policy that allows no others."""

import base64
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from markupsafe import Markup

from warpsmith.chart_models import RejectionWords, TrialPoints
from warpsmith.domain.base import Frozen
from warpsmith.domain.templates.outcome import Measured, Rejected
from warpsmith.http_models import TrialView
from warpsmith.report.parts import FOLDER
from warpsmith.system.printable import one_line

STYLES = ("style.css", "vendor/uplot/uPlot.min.css", "charts.css")
SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "chart_data.js", "charts.js")
MAX_REASON_CHARACTERS = 160
_Value = TypeVar("_Value", bound=Hashable)
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class ParameterColumn(Frozen):
    """Values of one parameter over the trials."""

    name: str
    values: tuple[str, ...]
    index: tuple[int | None, ...]
    """Index in `values` for each trial; None if the trial's template lacks the parameter."""


class RecordedTrials(Frozen):
    """The trials of a file that no service stands behind."""

    points: TrialPoints
    timed: bool
    """False if it is not known when trials ended; older results lack it."""
    parameters: tuple[ParameterColumn, ...]


def recorded_trials(trials: Sequence[TrialView]) -> RecordedTrials:
    """Finished trials in the form that `charts.js` draws."""
    done = [t for t in trials if t.outcome is not None]
    timed = bool(done) and all(t.at_s is not None for t in done)
    points = _points(done, _numbered(t.candidate for t in trials))
    return RecordedTrials(points=points, timed=timed, parameters=tuple(_parameters(done)))


def _points(done: Sequence[TrialView], candidates: Mapping[str, int]) -> TrialPoints:
    """Columns of finished trials, with rejections by index in the list of their words."""
    words = [_words(t) for t in done]
    index = _numbered(w for w in words if w is not None)
    return TrialPoints(
        number=tuple(t.number for t in done),
        at_s=tuple(t.at_s or 0.0 for t in done),
        round=tuple(t.round for t in done),
        candidate=tuple(candidates[t.candidate] for t in done),
        gain=tuple(map(_gain, done)),
        outcome=tuple(t.outcome.kind for t in done if t.outcome is not None),
        rejection=tuple(None if w is None else index[w] for w in words),
        reused=tuple(t.reused for t in done),
        rejections=tuple(RejectionWords(stage=stage, reason=reason) for stage, reason in index),
    )


def _numbered(values: Iterable[_Value]) -> dict[_Value, int]:
    """Distinct values with their numbers, in the order of their first occurrence."""
    return {value: n for n, value in enumerate(dict.fromkeys(values))}


def safe_json(value: Frozen) -> Markup:
    """JSON that may stand in a script element: nothing in it can end the element, or begin another."""
    return Markup(value.model_dump_json().translate(_ESCAPES))


@lru_cache
def part(name: str) -> Markup:
    """The text of a file of `warpsmith/report/parts`."""
    return Markup((FOLDER / name).read_text(encoding="utf-8"))


@lru_cache
def content_policy() -> str:
    """Policy of the page: nothing is loaded, and no script runs but those of `SCRIPTS`."""
    digests = (hashlib.sha256(part(name).encode()).digest() for name in SCRIPTS)
    scripts = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    rest = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return f"{rest}; script-src {scripts}"


def _gain(trial: TrialView) -> float | None:
    return float(f"{1 / trial.outcome.objective:.6g}") if isinstance(trial.outcome, Measured) else None


def _words(trial: TrialView) -> tuple[str, str] | None:
    if not isinstance(trial.outcome, Rejected):
        return None
    return trial.outcome.stage.value, one_line(trial.outcome.reason)[:MAX_REASON_CHARACTERS]


def _parameters(trials: Sequence[TrialView]) -> Iterable[ParameterColumn]:
    for name in dict.fromkeys(n for t in trials for n in t.configuration):
        texts = [str(t.configuration[name]) if name in t.configuration else None for t in trials]
        index = _numbered(v for v in texts if v is not None)
        yield ParameterColumn(
            name=name, values=tuple(index), index=tuple(None if v is None else index[v] for v in texts)
        )
