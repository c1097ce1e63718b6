"""Compares a Triton job with the function that its source has."""

from collections.abc import Iterator

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.triton_function import (
    LAUNCH_OPTIONS,
    TritonFunction,
    kernel_named,
    read_kernels,
)
from warpsmith.errors import ExpressionError
from warpsmith.job_files.finding import Finding

_INT32 = range(-(2**31), 2**31)


def triton_findings(job: Job) -> Iterator[Finding]:
    """Mismatches between a Triton job and its function."""
    text = job.kernel.source
    if text is None:
        return
    try:
        function = kernel_named(text, job.kernel.entry)
    except ValueError as exc:
        yield Finding("kernel.source", str(exc))
        return
    if function is None:
        names = ", ".join(f.name for f in read_kernels(text)) or "none"
        words = f"no @triton.jit function {job.kernel.entry!r} in the source; found {names}"
        yield Finding("kernel.entry", words)
        return
    for found in (_argument_names, _value_names, _missing_names):
        yield from found(job, function)
    yield from _values(job)


def _argument_names(job: Job, function: TritonFunction) -> Iterator[Finding]:
    """Arguments of the job that are no arguments of the function, or in another order."""
    every = [p.name for p in function.parameters]
    constexprs = {p.name for p in function.parameters if p.is_constexpr}
    given = [a.name for a in job.kernel.arguments]
    for n, name in enumerate(given):
        if name not in every:
            words = f"{function.name} has no parameter {name}; it has {', '.join(every)}"
            yield Finding(f"kernel.arguments.{n}.name", words)
        elif name in constexprs:
            words = f"{name} is a tl.constexpr; list it under kernel.constexprs, or under parameters"
            yield Finding(f"kernel.arguments.{n}.name", words)
    order = [name for name in every if name in given]
    if order != [name for name in given if name in every]:
        words = f"not in the order of {function.name}, which is {', '.join(order)}"
        yield Finding("kernel.arguments", words)


def _value_names(job: Job, function: TritonFunction) -> Iterator[Finding]:
    """Parameters and constexprs of the job that are none of the function, and no launch options."""
    constexprs = {p.name: p.is_constexpr for p in function.parameters}
    places = {f"parameters.{n}.name": p.name for n, p in enumerate(job.parameters)}
    unknown = f"is no parameter of {function.name}, and no launch option ({', '.join(LAUNCH_OPTIONS)})"
    for field, name in places.items():
        if name not in constexprs and name not in LAUNCH_OPTIONS:
            yield Finding(field, f"{name} {unknown}")
        elif name in job.kernel.constexprs:
            yield Finding(f"kernel.constexprs.{name}", "it is one of the parameters as well; list it once")
        elif not constexprs.get(name, True):
            yield Finding(field, f"{name} is no tl.constexpr of {function.name}")
    for name in job.kernel.constexprs:
        if name not in constexprs and name not in LAUNCH_OPTIONS:
            yield Finding(f"kernel.constexprs.{name}", f"{name} {unknown}")


def _missing_names(job: Job, function: TritonFunction) -> Iterator[Finding]:
    """Parameters of the function to which the job gives no value."""
    listed = {a.name for a in job.kernel.arguments} | {p.name for p in job.parameters}
    for parameter in function.parameters:
        if parameter.name not in listed | job.kernel.constexprs.keys() and parameter.default is None:
            field = "kernel.constexprs" if parameter.is_constexpr else "kernel.arguments"
            also = ", or under parameters" * parameter.is_constexpr
            words = f"{parameter.name} of {function.name} has no value; list it here{also}"
            yield Finding(field, words)


def _values(job: Job) -> Iterator[Finding]:
    """Warnings where an engine's launch would pass another type than the job says."""
    for n, argument in enumerate(job.kernel.arguments):
        if argument.role is not Role.SCALAR or argument.value is None or argument.dtype.is_float:
            continue
        for workload in job.workloads:
            try:
                value = argument.value.integer(workload.scope() | job.space.defaults)
            except ExpressionError:
                continue
            if (value in _INT32) != (argument.dtype is Dtype.INT32):
                fit = Dtype.INT32 if value in _INT32 else Dtype.INT64
                words = f"{value} is passed as {fit.value} by Triton's own launch, not {argument.dtype.value}"
                yield Finding(f"kernel.arguments.{n}.dtype", words, is_error=False)
                break
