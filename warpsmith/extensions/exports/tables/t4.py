"""Trials in the results format T4 of the autotuning community, as Kernel Tuner reads it."""

import json
from collections.abc import Sequence
from typing import Any

from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected, Stage
from warpsmith.errors import InvalidInput
from warpsmith.http_models import JobResult, TrialView

VERSION = "1.0.0"
_INVALIDITY = {
    Stage.SPACE: "constraints",
    Stage.COMPILE: "compile",
    Stage.LAUNCH: "runtime",
    Stage.RUN: "runtime",
    Stage.TIMING: "timeout",
}
"""By stage of a rejection; what is left is a wrong result."""


def files(result: JobResult, trials: Sequence[TrialView]) -> dict[str, str]:
    """`results.json` with every finished trial.

    Raises:
        InvalidInput: the trials are not there.
    """
    rows = [_row(t, t.outcome) for t in trials if t.outcome is not None]
    if not rows:
        raise InvalidInput(
            "--as", "t4 holds trials, and this result has none; name the job, or a folder of it"
        )
    made = {
        "schema_version": VERSION,
        "metadata": {
            "timeunit": "microseconds",
            "device": result.device,
            "driver": result.driver,
            "job": result.id,
            "program": f"warpsmith {result.warpsmith_version}",
        },
        "results": rows,
    }
    return {"results.json": json.dumps(made, indent=1) + "\n"}


def _row(trial: TrialView, outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {
        "configuration": {"candidate": trial.candidate, **trial.configuration},
        "objectives": ["objective"],
        "times": {"compilation_time": 0.0, "runtimes": [], "framework": 0.0, "search_algorithm": 0.0},
        "correctness": 0 if isinstance(outcome, Rejected) else 1,
        "measurements": [],
    }
    if isinstance(outcome, Rejected):
        return row | {"invalidity": _INVALIDITY.get(outcome.stage, "correctness")}
    if isinstance(outcome, CutShort):
        row["measurements"] = [{"name": "objective", "value": outcome.estimate, "unit": ""}]
        return row | {"invalidity": "correct"}
    assert isinstance(outcome, Measured)
    times = [t.cold or t.hot for t in outcome.timings]
    row["times"]["runtimes"] = [t.median_us for t in times if t is not None]
    row["measurements"] = [{"name": "objective", "value": outcome.objective, "unit": ""}]
    row["measurements"] += [
        {"name": f"time {t.workload}", "value": found.median_us, "unit": "us"}
        for t, found in zip(outcome.timings, times, strict=True)
        if found is not None
    ]
    return row | {"invalidity": "correct"}
