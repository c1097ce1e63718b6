"""Trials as records and as data frames."""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.http_models import TrialView
from warpsmith.tuning.objective import steady_times_us, times_us

FRAMES = ("pandas", "polars")
"""Libraries of data frames, the preferred one first."""

Record = dict[str, str | int | float | bool | None]
"""Values of a trial by column."""


def trial_records(job: Job, trials: Sequence[TrialView]) -> list[Record]:
    """Records of the trials, in order; all have the same columns.

    `number`, `round`, `candidate`, `state`; `outcome`: `measured`, `cut_short`, `rejected`, or None before
    the end; `speedup`: baseline time divided by the trial's time (energies, if the job minimises energy),
    over all workloads, of measured trials only, as the search saw it; `time_us.WORKLOAD`: time of a launch in
    the job's cache state, corrected for drift; `stage` and `reason` of a rejection; `seconds` that the trial
    took; `reused`; and `parameter.NAME`: the configuration.
    """
    names = list(dict.fromkeys(name for t in trials for name in t.configuration))
    return [_record(job, trial, names) for trial in trials]


def frame(records: Sequence[Record], library: str | None = None) -> Any:
    """Records as a data frame of pandas or polars.

    Args:
        library: `pandas` or `polars`. None: the first of the two that is installed.

    Raises:
        InvalidInput: there is no such library.
        Unavailable: it is not installed.
    """
    if library is not None and library not in FRAMES:
        raise InvalidInput("library", f"{library!r} is neither {' nor '.join(FRAMES)}")
    wanted = FRAMES if library is None else (library,)
    for name in wanted:
        with suppress(ImportError):
            return _framed(name, list(records))
    words = "neither pandas nor polars is installed" if library is None else f"{library} is not installed"
    raise Unavailable(f"{words}; `pip install {wanted[0]}`, or use `trials`, a list of dicts")


def _framed(library: str, records: list[Record]) -> Any:
    module = import_module(library)
    if library == "pandas":
        return module.DataFrame.from_records(records)
    # All rows decide on the types; a column of numbers and words becomes text.
    return module.DataFrame(records, infer_schema_length=None, strict=False)


def _record(job: Job, trial: TrialView, parameters: Sequence[str]) -> Record:
    outcome = trial.outcome
    rejected = outcome if isinstance(outcome, Rejected) else None
    times = _times_us(job, outcome)
    return {
        "number": trial.number,
        "round": trial.round,
        "candidate": trial.candidate,
        "state": trial.state.value,
        "outcome": None if outcome is None else outcome.kind,
        "speedup": 1 / outcome.objective if isinstance(outcome, Measured) else None,
        **{f"time_us.{w.key}": times.get(w.key) for w in job.workloads},
        "stage": rejected.stage.value if rejected else None,
        "reason": rejected.reason if rejected else None,
        "seconds": trial.seconds,
        "reused": trial.reused,
        **{f"parameter.{name}": trial.configuration.get(name) for name in parameters},
    }


def _times_us(job: Job, outcome: Outcome | None) -> dict[str, float]:
    if isinstance(outcome, Measured):
        return steady_times_us(job, outcome)
    return times_us(job, outcome.timings) if isinstance(outcome, CutShort) else {}
