"""Checks of a job's own parameters and constraints."""

import re
import time
from collections.abc import Iterator, Mapping

from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.source_text import code_of
from warpsmith.domain.templates.space import Constraint, Space, holds
from warpsmith.errors import ExpressionError
from warpsmith.job_files.finding import Finding
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.source.macros.replaced_names import replaced_names

_Numbered = tuple[int, Constraint]
_Scopes = list[dict[str, Value]]
LOOK_S = 2.0
"""Seconds for constraints that the defaults break; what could not be told by then is no error."""


def parameter_findings(job: Job, device: Mapping[str, Value]) -> Iterator[Finding]:
    """Findings about constraints that nothing meets, and about parameters that nothing uses.

    Args:
        device: limits of a device by name; empty: unknown, so constraints that name one are not looked at.
    """
    yield from replaced_identifiers(job)
    yield from unmet_constraints(job, device)
    yield from _unused(job)


def replaced_identifiers(job: Job) -> Iterator[Finding]:
    """Errors for macros that would put a number in the place of a name of the source."""
    kernel, language = job.kernel, job.kernel.backend.language
    if kernel.source is None or language.is_recorded or not language.is_c_text:
        return
    given = given_macros(kernel.options)
    fields = {name: ("kernel.options", "macro") for name, value in given.items() if not _is_name(value)}
    for n, parameter in enumerate(job.parameters):
        if parameter.name not in language.launch_options and not all(map(_is_name, parameter.values)):
            fields[parameter.name] = f"parameters.{n}.name", "parameter"
    known = dict.fromkeys((a.name for a in kernel.arguments), "argument") | {kernel.entry: "kernel"}
    macros = given | {name: str(value) for name, value in job.space.defaults.items()}
    for file, text in {"": kernel.source, **kernel.files}.items():
        for name, (kind, line) in replaced_names(text, fields.keys(), macros).items():
            field, what = fields.pop(name)
            where = f" of {file}" if file else ""
            words = (
                f"{what} {name!r} would replace the {known.get(name, kind)} {name!r} in line {line}{where}"
            )
            yield Finding(field, f"{words}; choose another name")


def _is_name(value: object) -> bool:
    """True for what may stand where a name does: a word, of a type too, or nothing."""
    return isinstance(value, str) and (not value or value.isidentifier())


def unmet_constraints(job: Job, device: Mapping[str, Value]) -> Iterator[Finding]:
    """Errors for constraints that leave no workload to the defaults, with which every template begins.

    Args:
        device: as of `parameter_findings`.
    """
    known = [
        (n, c)
        for n, c in enumerate(job.space.constraints)
        if device or not any(name.startswith("device.") for name in c.expression.names)
    ]
    scopes = [{**device, **w.scope()} for w in job.workloads]
    try:
        unmet, words = _unmet(job.space, known, scopes)
    except ExpressionError:
        return  # it is said of the field
    for n, constraint in unmet:
        yield Finding(f"constraints.{n}", words.format(constraint.expression.text))


def _unmet(space: Space, known: list[_Numbered], scopes: _Scopes) -> tuple[list[_Numbered], str]:
    """Constraints that stand in the way of the defaults, with the message on each; none if the defaults fit.

    Raises:
        ExpressionError: a constraint cannot be evaluated.
    """
    constraints = [c for _, c in known]
    if not known or _allow_defaults(space, constraints, scopes):
        return [], ""
    until = time.monotonic() + LOOK_S
    alone = [(n, c) for n, c in known if not _can_hold(space, [c], scopes, until)]
    if alone:
        words = "no configuration meets it on any workload: {}; widen it, or the values of its parameters"
        return alone, words
    if not _can_hold(space, constraints, scopes, until):
        words = f"no configuration meets all {len(known)} constraints on any workload; the last is {{}}"
        return known[-1:], words
    broken = [(n, c) for n, c in known if not _allow_defaults(space, [c], scopes)]
    given = ", ".join(f"{name}={value}" for name, value in space.defaults.items())
    words = f"the defaults ({given}), which are your kernel as it is, break {{}} on every workload"
    return broken or known[-1:], words


def _allow_defaults(space: Space, constraints: list[Constraint], scopes: _Scopes) -> bool:
    """True if the defaults meet the constraints on a workload."""
    return any(holds(tuple(constraints), {**scope, **space.defaults}) for scope in scopes)


def _can_hold(space: Space, constraints: list[Constraint], scopes: _Scopes, until: float) -> bool:
    """True if a configuration meets the constraints, or `until` passed before all were enumerated."""
    from warpsmith.search.spaces.feasible_set import enumerate_space

    named = {name for c in constraints for name in c.expression.names}
    used = tuple(p for p in space.parameters if p.name in named)
    wanted = Space(parameters=used, constraints=tuple(constraints))
    found = enumerate_space(wanted, scopes, seconds=max(0.0, until - time.monotonic()))
    return found.count > 0 or not found.exact


def _unused(job: Job) -> Iterator[Finding]:
    kernel = job.kernel
    if kernel.source is None:
        return
    text = code_of("\n".join((kernel.source, *kernel.files.values())), characters=False)
    if "##" in text:
        return  # names may be put together
    words = set(re.findall(r"\w+", text))
    words |= set(re.findall(r"\w+", kernel.model_dump_json(exclude={"source", "files"})))
    words |= {name for c in job.space.constraints for name in c.expression.names}
    words |= set(kernel.backend.language.launch_options)
    for n, parameter in enumerate(job.parameters):
        if parameter.name not in words:
            count = len(parameter.values)
            said = f"{parameter.name} is in neither the source nor the launch nor a constraint, and "
            said += f"makes {count} configurations of each; remove it, or use it"
            yield Finding(f"parameters.{n}", said, is_error=False)
