"""Exports of a result: what another program builds in, and the evidence beside it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports import (
    cpp,
    flashinfer_bench,
    hf_kernel,
    sglang,
    torch_op,
    tvm_ffi,
)
from warpsmith.extensions.exports.c_header import c_header
from warpsmith.extensions.exports.operator import Operator
from warpsmith.extensions.exports.tables import t4
from warpsmith.extensions.exports.tables.engine_options import OPTION
from warpsmith.extensions.exports.tables.engine_table import engine_table
from warpsmith.extensions.exports.tables.engines import ENGINES
from warpsmith.http_models import JobResult, TrialView
from warpsmith.report.shape_lookup import Lookup

OtherDevice = Literal["fallback", "error"]
EVIDENCE = {
    *("id", "device", "driver", "device_class", "architecture", "limits", "reason", "speedup", "comparisons"),
    *("no_gain", "between", "compiler", "warpsmith_version", "warpsmith_commit"),
}


@dataclass(frozen=True)
class Wanted:
    """An export that was asked for."""

    result: JobResult
    trials: tuple[TrialView, ...] = ()
    name: str = ""
    other_device: OtherDevice = "fallback"
    table: Mapping[str, str] = field(default_factory=dict)
    """Options of an engine's table, by key; for the formats of `ENGINES` only."""

    @property
    def operator(self) -> Operator:
        """The tuned kernel as an operator."""
        return Operator(self.result, self.name)


Files = dict[str, str]
"""Texts by path."""


def _c(wanted: Wanted) -> Files:
    try:
        return {"dispatch.h": c_header(Lookup(wanted.result))}
    except ValueError as exc:
        raise InvalidInput("", str(exc)) from exc


def _cpp(wanted: Wanted) -> Files:
    operator = wanted.operator
    return {f"{operator.name}.hpp": cpp.header(operator, wanted.other_device)}


def _torch(wanted: Wanted) -> Files:
    return torch_op.package(wanted.operator, wanted.other_device)


def _tvm_ffi(wanted: Wanted) -> Files:
    return tvm_ffi.module(wanted.operator, wanted.other_device)


def _flashinfer_bench(wanted: Wanted) -> Files:
    return flashinfer_bench.solution(wanted.operator, wanted.other_device)


def _hf_kernel(wanted: Wanted) -> Files:
    return hf_kernel.tree(wanted.operator, wanted.other_device)


def _sglang(wanted: Wanted) -> Files:
    return sglang.tree(wanted.operator, wanted.other_device)


def _t4(wanted: Wanted) -> Files:
    return t4.files(wanted.result, wanted.trials)


def _engine_table(form: str) -> Callable[[Wanted], Files]:
    def write(wanted: Wanted) -> Files:
        table = engine_table(wanted.result, form, wanted.table)
        return {table.path: table.text(), "evidence.json": evidence(wanted.result, table=table.evidence())}

    return write


FORMATS: dict[str, Callable[[Wanted], Files]] = {
    "c": _c,
    "cpp": _cpp,
    "torch": _torch,
    "tvm-ffi": _tvm_ffi,
    "hf-kernel": _hf_kernel,
    "sglang": _sglang,
    "flashinfer-bench": _flashinfer_bench,
    "t4": _t4,
    **{form: _engine_table(form) for form in ENGINES},
}
"""What writes each format."""


def write_export(wanted: Wanted, form: str, folder: Path) -> list[Path]:
    """Write an export and `evidence.json`; returns the paths written.

    Raises:
        InvalidInput: there is no such format, or it cannot hold the job.
    """
    if form not in FORMATS:
        raise InvalidInput("--as", f"there is no format {form!r}; there are: {', '.join(FORMATS)}")
    if wanted.table and form not in ENGINES:
        raise InvalidInput(OPTION, f"{form} is no table; only {', '.join(ENGINES)} take it")
    made = FORMATS[form](wanted)
    made.setdefault("evidence.json", evidence(wanted.result))
    paths = []
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def evidence(result: JobResult, **more: Any) -> str:
    """Device, driver, and the verdict and interval of every workload, as JSON; `more` are further keys."""
    shown = result.model_dump(mode="json", include=EVIDENCE)
    shown["options"] = list(result.job.kernel.options)
    return json.dumps(shown | more, indent=1) + "\n"
