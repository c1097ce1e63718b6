"""The job that a call of `tune` describes."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Budget, Job, Reference
from warpsmith.domain.kernels.launch import Launch
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.argument_fields import ArgumentWriter, by_name, sizes_of
from warpsmith.extensions.clients.python.callable_expressions import FunctionReader
from warpsmith.extensions.clients.python.callable_source import Names, reference_fields, text_fields
from warpsmith.extensions.clients.python.job_parts import (
    Constraints,
    Extent,
    Extents,
    Fields,
    GivenTolerance,
    Parameters,
    Workloads,
    budget_fields,
    constraint_fields,
    launch_fields,
    parameter_fields,
    plain,
    tolerance_fields,
    workload_fields,
)
from warpsmith.extensions.clients.python.kernel_given import GivenKernel, job_file, source_given, whole_job
from warpsmith.extensions.scaffold.indices.index_space import IndexSpace, SourceContext, index_space
from warpsmith.extensions.scaffold.job_file import choose_kernel
from warpsmith.job_checks.all_findings import source_findings
from warpsmith.job_files.jobfile import InvalidJob, JobFile, parse_job
from warpsmith.job_files.kernel_sources import FoundSource
from warpsmith.source.kernels.kernel_definitions import KernelDefinition, find_kernels
from warpsmith.source.lexing.conditionals import given_macros

DEFAULT_SECONDS = 60
"""Limit on the device's time of a call that gives none."""
_MAX_SHOWN = 8
_OF_WHOLE_JOBS = ("kernel", "name", "budget", "seconds", "trials", "rounds", "include_dirs", "checks")
"""Parameters of `tune` that may be given besides a whole job."""
_INPUTS = (Role.INPUT, Role.INOUT, Role.SCALAR, Role.STRUCT, Role.SYMBOL)
_OUTPUTS = (Role.OUTPUT, Role.INOUT)


@dataclass(frozen=True)
class TuneCall:
    """Parameters of one call of `tune`, which describes each."""

    kernel: GivenKernel
    arguments: Sequence[Any] | Mapping[str, Any] | None = None
    workloads: Workloads | None = None
    grid: Extents | None = None
    block: Extents | None = None
    launch: Launch | Mapping[str, Any] | None = None
    entry: str | None = None
    backend: Backend | str | None = None
    reference: Callable[..., Any] | str | Mapping[str, Any] | Reference | None = None
    tolerances: Mapping[str, GivenTolerance] = field(default_factory=dict)
    parameters: Parameters = ()
    constraints: Constraints = ()
    options: Sequence[str] = ()
    include_dirs: Sequence[str | Path] = ()
    name: str | None = None
    budget: Budget | Mapping[str, Any] | None = None
    seconds: float | None = None
    trials: int | None = None
    rounds: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    checks: bool = True


def job_of(call: TuneCall) -> Job:
    """The job of a call, checked against its source. Warnings are Python's.

    Raises:
        InvalidInput: what is given is wrong; the message names the argument and the fix.
    """
    folders = [Path(folder) for folder in call.include_dirs]
    file = job_file(call.kernel, folders)
    whole = whole_job(call.kernel, file)
    job = _of_source(call, folders) if whole is None else _changed(call, whole)
    if call.checks:
        _check(job, file)
    return job


def _changed(call: TuneCall, job: Job) -> Job:
    for name in (f.name for f in fields(call)):
        value = getattr(call, name)
        empty = value is None or (isinstance(value, Sequence | Mapping) and not value)
        if name not in _OF_WHOLE_JOBS and not empty:
            words = "a whole job is given, which has its own; change it there, or give the kernel's source"
            raise InvalidInput(name, f"{words} (besides a whole job: {', '.join(_OF_WHOLE_JOBS[1:])})")
    changes: Fields = {"budget": plain(job.budget) | _limits(call)} if _limits(call) else {}
    if call.name is not None:
        changes["name"] = call.name
    return parse_job(plain(job) | changes) if changes else job


def _of_source(call: TuneCall, folders: Sequence[Path]) -> Job:
    assert isinstance(call.kernel, str | Path)
    found, folder = source_given(call.kernel, _backend(call.backend), [f.resolve() for f in folders])
    definition = _definition(found, call)
    given = by_name(definition, call.arguments)
    workloads = workload_fields(call.workloads, sizes_of(definition, given))
    parameters = parameter_fields(call.parameters)
    functions = FunctionReader([str(p.get("name")) for p in parameters], workloads[0].get("dimensions", {}))
    launch = launch_fields(call.grid, call.block, call.launch, functions)
    threads = " * ".join(f"({extent})" for extent in launch.get("block", [1]))
    space = partial(_index_space, found, definition, call.options, launch.get("block", ()))
    writer = ArgumentWriter(definition, workloads[0].get("dimensions", {}), threads, space)
    arguments = writer.fields(given)
    kernel = {
        "backend": found.dialect.backend.value,
        **({"source_file": found.source_file} if found.source is None else {"source": found.source}),
        "entry": _entry(definition, call.entry),
        "arguments": arguments,
        "launch": launch,
        "options": list(call.options),
        "include_dirs": list(found.include_dirs),
        "includes": list(found.includes),
    }
    data: Fields = {
        "name": call.name or re.sub(r"\W+", "-", definition.name)[:100].strip("-_") or "kernel",
        "kernel": kernel,
        "workloads": workloads,
        "tolerances": {name: tolerance_fields(name, pair) for name, pair in call.tolerances.items()},
        "parameters": parameters,
        "constraints": constraint_fields(call.constraints, functions),
        "budget": {"seconds": DEFAULT_SECONDS} | _limits(call),
    }
    reference = _reference(call, arguments, workloads[0].get("dimensions", {}))
    if reference is not None:
        data["reference"] = reference
    try:
        return parse_job(_with_fields(data, call.fields), folder)
    except InvalidInput as exc:
        raise _as_given(exc, arguments) from exc


def _index_space(
    found: FoundSource, kernel: KernelDefinition, options: Sequence[str], block: Sequence[Extent]
) -> IndexSpace:
    """Shapes of buffers as the source shows them, for this block if its extents are numbers."""
    fixed = tuple(int(e) for e in block if str(e).isdecimal())
    own = fixed if len(fixed) == len(block) else ()
    around = SourceContext(own, defines=given_macros(tuple(options)), headers=found.header_texts)
    return index_space(found.text, found.dialect.backend, kernel.name, around)


def _definition(found: FoundSource, call: TuneCall) -> KernelDefinition:
    kernels = find_kernels(found.text, found.dialect, given_macros(tuple(call.options)), found.header_texts)
    kernel, _ = choose_kernel(kernels, found.shown, call.entry)
    if kernel.specialisation or "<" in (call.entry or ""):
        return kernel
    open_names = [p.name for p in kernel.template if not p.default and not p.is_pack]
    if open_names:
        names = ", ".join(open_names)
        words = f"{kernel.name} is a template of {names}; give its arguments"
        raise InvalidInput("entry", f"{words}, such as entry='{kernel.name}<float>'")
    return kernel


def _entry(kernel: KernelDefinition, entry: str | None) -> str:
    if entry is not None and "<" in entry:
        return entry
    name = kernel.name if kernel.is_extern_c else kernel.qualified_name
    return f"{name}<{kernel.specialisation}>" if kernel.specialisation else name


def _backend(given: Backend | str | None) -> Backend | None:
    if given is None:
        return None
    try:
        return Backend(given)
    except ValueError:
        raise InvalidInput("backend", f"{given!r} is none; give cuda or opencl") from None


def _limits(call: TuneCall) -> Fields:
    return budget_fields(call.budget, seconds=call.seconds, trials=call.trials, rounds=call.rounds)


def _reference(call: TuneCall, arguments: Sequence[Fields], dimensions: Mapping[str, int]) -> Fields | None:
    given = call.reference
    if given is None:
        return None
    if isinstance(given, BaseModel | Mapping):
        return plain(given)
    if isinstance(given, str):
        return dict(text_fields(given))
    of = {role: [a["name"] for a in arguments if a["role"] in role] for role in (_INPUTS, _OUTPUTS)}
    return dict(reference_fields(given, Names(of[_INPUTS], of[_OUTPUTS], list(dimensions))))


def _with_fields(data: Fields, more: Mapping[str, Any]) -> Fields:
    """The job together with fields that the call has no argument for."""
    for name, value in more.items():
        if name == "kernel" and isinstance(value, Mapping):
            data = {**data, name: _with_fields(data[name], value)}
        elif data.get(name):
            raise InvalidInput(f"fields.{name}", "this is said by an argument of the call; leave it out here")
        else:
            data = {**data, name: plain(value) if isinstance(value, BaseModel) else value}
    return data


def _check(job: Job, file: JobFile | None) -> None:
    """Compare a job with its source.

    Raises:
        InvalidInput: they do not match.
    """
    findings = source_findings(job)
    located = list(findings) if file is None else file.located(findings)
    errors = [f for f in located if f.is_error]
    if errors and file is not None:
        raise InvalidJob(file.path, errors)
    if errors:
        rest = "".join(f"\n{f}" for f in errors[1:_MAX_SHOWN])
        exc = InvalidInput(errors[0].field, errors[0].message + rest)
        raise _as_given(exc, [{"name": a.name} for a in job.kernel.arguments])
    for warning in located:
        warnings.warn(str(warning), stacklevel=4)


def _as_given(exc: InvalidInput, arguments: Sequence[Fields]) -> InvalidInput:
    """An error about a field of the job as one about the argument of the call that gave it."""
    name = exc.field.removeprefix("kernel.launch.").removeprefix("kernel.")
    if name in ("source", "source_file"):
        name = "kernel"
    place = re.match(r"arguments\.(\d+)", name)
    if place is not None and int(place.group(1)) < len(arguments):
        name = f"arguments.{arguments[int(place.group(1))]['name']}{name[place.end() :]}"
    return InvalidInput(name, exc.message)
