"""Compares the symbols of a job with the variables that its source declares."""

import difflib
import re
from collections.abc import Iterator

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.jobs.job import Job
from warpsmith.job_files.finding import Finding
from warpsmith.source.declarations.device_variables import (
    DeviceVariable,
    device_variables,
    unfilled_constants,
)
from warpsmith.source.declarations.type_words import element_type

_MAX_SHOWN = 8


def symbol_findings(job: Job) -> Iterator[Finding]:
    """Constant memory that nothing fills, and symbols that the source lacks or declares otherwise."""
    text, given = job.kernel.source or "", {a.name for a in job.kernel.symbols}
    for variable in unfilled_constants(text):
        if variable.name not in given:
            words = f"nothing fills `__constant__ {variable.name}`, so it holds zeros: a job has no host code"
            words += "; list it under kernel.buffers with `role: symbol`, or give it an initialiser"
            yield Finding("kernel.source", words, is_error=False, inner_line=variable.line)
    if not given:
        return
    declared = device_variables(text)
    # Headers and macros may declare it as well; the binary has the last word.
    is_whole = re.search(r"^\s*#\s*include\b|##", text, re.M) is None
    for place, argument in job.kernel.placed():
        if argument.name not in given:
            continue
        found = [v for v in declared if v.name == argument.name]
        if len(found) == 1:
            yield from _of_type(f"kernel.{place}", argument, found[0])
        elif not found and (is_whole or argument.name not in text):
            yield _undeclared(f"kernel.{place}.name", argument.name, declared, is_error=is_whole)


def _undeclared(field: str, name: str, declared: list[DeviceVariable], *, is_error: bool) -> Finding:
    names = list(dict.fromkeys(v.name for v in declared))
    words = f"the source declares no __constant__ or __device__ variable {name!r}"
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        words += f"; did you mean {close[0]!r}?"
    elif names:
        words += f"; it declares {', '.join(names[:_MAX_SHOWN])}"
    return Finding(field, words, is_error=is_error)


def _of_type(field: str, argument: Argument, variable: DeviceVariable) -> Iterator[Finding]:
    dtype, _ = element_type(variable.type_text, {})
    kind = f"`{variable.type_text} {variable.name}` in line {variable.line} of the source"
    if dtype is None or dtype is argument.dtype:
        return
    if dtype.size_bytes != argument.dtype.size_bytes or dtype.is_float or argument.dtype.is_float:
        words = f"symbol {argument.name} is {argument.dtype.value} here, and {dtype.value} in {kind}"
        yield Finding(f"{field}.dtype", words)
