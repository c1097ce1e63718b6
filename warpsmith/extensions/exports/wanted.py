"""An export that is asked for, and the evidence beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from warpsmith.extensions.exports.operator import Operator
from warpsmith.http_models import JobResult, TrialView

OtherDevice = Literal["fallback", "error"]
EVIDENCE = {
    *("id", "device", "driver", "device_class", "architecture", "limits", "reason", "speedup", "comparisons"),
    *("no_gain", "between", "compiler", "warpsmith_version", "warpsmith_commit"),
}


@dataclass(frozen=True)
class ExportRequest:
    """An export that was asked for."""

    result: JobResult
    trials: tuple[TrialView, ...] = ()
    name: str = ""
    other_device: OtherDevice = "fallback"
    table: Mapping[str, str] = field(default_factory=dict)
    """Options of an engine's table, by key; for the formats of `ENGINES` only."""
    more: tuple[JobResult, ...] = ()
    """Results with other batch sizes of the same table; for the formats of `ENGINES` only."""

    @property
    def operator(self) -> Operator:
        """The tuned kernel as an operator."""
        return Operator(self.result, self.name)


Files = dict[str, str]
"""Texts by path."""


def evidence(result: JobResult, **more: Any) -> str:
    """Device, driver, and the verdict and interval of every workload, as JSON; `more` are further keys."""
    shown = result.model_dump(mode="json", include=EVIDENCE)
    shown["options"] = list(result.job.kernel.options)
    return json.dumps(shown | more, indent=1) + "\n"
