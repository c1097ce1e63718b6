"""Compares a job's entry and arguments with the kernel's definition, as far as the source shows it.

Nothing is reported about facts that the source leaves open (a type behind a macro, a kernel in a header).
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.extensions.scaffold.guesses import bind
from warpsmith.extensions.scaffold.reading.pointer_usage import pointer_usage
from warpsmith.extensions.scaffold.reading.switched_off import switched_off
from warpsmith.extensions.scaffold.source_checks.arguments import argument_findings
from warpsmith.extensions.scaffold.source_checks.each_launch import of_each_launch
from warpsmith.extensions.scaffold.source_checks.symbols import symbol_findings
from warpsmith.job_files.finding import Finding
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition, find_kernels
from warpsmith.source.lexing.conditionals import given_macros
from warpsmith.source.lexing.tokens import Tokens, tokenise

_DEFINE = re.compile(r"-D\s*(\w+)(?:=(.*))?")
_MAX_SHOWN = 12


def signature_findings(job: Job, devices: Sequence[DeviceInfo] = ()) -> list[Finding]:  # noqa: ARG001
    """Mismatches between the job and its kernel. Among several definitions, the best match is used."""
    if (own := job.kernel.backend.language.signature_findings) is not None:
        return list(own(job))
    return [*of_each_launch(job, _of_launch), *unwritten_scratch(job), *symbol_findings(job)]


def _of_launch(job: Job) -> list[Finding]:
    if job.kernel.source is None or job.kernel.backend.language.is_recorded:
        return []
    tokens = tokenise(job.kernel.source)
    given = given_macros(job.kernel.options)
    kernels = kernels_of(job.kernel)
    found = definitions(kernels, job.kernel.entry)
    if not found:
        return _no_entry(job, kernels, tokens)
    types = _macro_types(tokens, job.kernel.options)
    certain = not _includes(tokens)
    of_each = []
    for kernel in found:
        known = {**types, **bind(kernel, job.kernel.entry).values}
        # A parameter may stand for a different type in every configuration.
        known = {word: known[word] for word in known.keys() - {p.name for p in job.parameters}}
        of_each.append(list(argument_findings(job, kernel, known, certain)))
    best = min(of_each, key=lambda found: (sum(f.is_error for f in found), len(found)))
    return [*_left_out(job, found, given, certain), *best]


def _left_out(
    job: Job, found: Sequence[KernelDefinition], given: Mapping[str, str], is_certain: bool
) -> Iterator[Finding]:
    """A finding if conditionals leave out every definition of the entry, whatever values parameters have."""
    source = job.kernel.source
    if source is None or any(k.is_taken for k in found):
        return
    headers = tuple(job.kernel.files.values())
    switch = switched_off(source, found[0].line, given, headers)
    if switch is None:
        return
    named = {*re.findall(r"\w+", switch.condition), *(switch.defines or ())}
    if named.isdisjoint(p.name for p in job.parameters):
        field = "kernel.entry" if switch.defines is None else "kernel.options"
        yield Finding(field, switch.words(found[0].name), is_error=is_certain)


def unwritten_scratch(job: Job) -> Iterator[Finding]:
    """Findings for scratch that the first launch that takes it only reads."""
    kernel = job.kernel
    if kernel.source is None or not kernel.scratch or kernel.backend.language.is_recorded:
        return
    kernels = kernels_of(kernel)
    for n, argument in enumerate(kernel.arguments):
        if argument.role is not Role.SCRATCH:
            continue
        step = next(s for s in kernel.launches if argument.name in s.arguments)
        place = step.arguments.index(argument.name)
        found = definitions(kernels, step.entry)
        if found and all(_only_reads(k, place) for k in found):
            words = f"{step.entry} reads {argument.name} before any launch has written it"
            yield Finding(f"kernel.arguments.{n}.role", f"{words}; its contents are never given")


def _only_reads(kernel: KernelDefinition, place: int) -> bool:
    if place >= len(kernel.arguments) or not kernel.arguments[place].name:
        return False
    parameter = kernel.arguments[place]
    if parameter.is_const or parameter.address_space == "constant":
        return True
    usage = pointer_usage(kernel.body, parameter.name)
    return usage.is_read and not usage.is_written and not usage.is_passed_on


def kernels_of(kernel: Kernel) -> tuple[KernelDefinition, ...]:
    """Kernels that a job's source defines with its options and headers."""
    headers, macros = tuple(kernel.files.values()), given_macros(kernel.options)
    return find_kernels(kernel.source or "", Dialect.from_backend(kernel.backend), macros, headers)


def definitions(kernels: tuple[KernelDefinition, ...], entry: str) -> list[KernelDefinition]:
    """The definitions that an entry may refer to, by name without template arguments."""
    base = re.sub(r"\s", "", entry.split("<", 1)[0]).removeprefix("::")
    found = [k for k in kernels if f"::{k.qualified_name}".endswith(f"::{base}")]
    return [k for k in found if k.qualified_name == base] or found


def _no_entry(job: Job, kernels: tuple[KernelDefinition, ...], tokens: Tokens) -> list[Finding]:
    entry = job.kernel.entry
    name = re.sub(r"\s", "", entry.split("<", 1)[0]).rsplit("::", maxsplit=1)[-1]
    if any(name == p.name for p in job.parameters) or _may_define(tokens, name):
        return []
    names = list(dict.fromkeys(k.qualified_name for k in kernels))
    in_header = _includes(tokens)
    close = difflib.get_close_matches(name, names, n=1)
    if in_header and not close:
        return []
    if not names:
        kind = job.kernel.backend.language.kernel_word
        return [Finding("kernel.entry", f"no kernel {entry!r}: the source defines no {kind} function")]
    near = close or (names if len(names) == 1 else [])
    shown = ", ".join(names[:_MAX_SHOWN]) + (", ..." if len(names) > _MAX_SHOWN else "")
    hint = f"; did you mean {near[0]!r}?" if near else ""
    words_said = f"no kernel {entry!r} in the source; found {shown}{hint}"
    # A header may hold a kernel with a similar name.
    return [Finding("kernel.entry", words_said, is_error=not in_header)]


def _may_define(tokens: Tokens, name: str) -> bool:
    """True if the source names a kernel, if only in a macro, or puts names together."""
    words = {t.text for t in tokens.items if t.kind == "name"}
    directives = [t for t in tokens.items if t.kind == "directive"]
    words |= {w for t in directives for w in re.findall(r"\w+", t.rest)}
    return name in words or any(t.text == "define" and "##" in t.rest for t in directives)


def _includes(tokens: Tokens) -> bool:
    return any(t.kind == "directive" and t.text == "include" for t in tokens.items)


def _macro_types(tokens: Tokens, options: tuple[str, ...]) -> Mapping[str, str]:
    """Meanings of words that are defined exactly once, in the source or by an option."""
    counts: dict[str, int] = {}
    for token in tokens.items:
        name = re.match(r"\w+", token.rest) if token.kind == "directive" and token.text == "define" else None
        if name is not None:
            counts[name.group()] = counts.get(name.group(), 0) + 1
    found = {name: value for name, value in tokens.macros.items() if counts.get(name) == 1}
    return found | dict(_given(options))


def _given(options: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for option in options:
        match = _DEFINE.fullmatch(option)
        if match is not None:
            yield match.group(1), match.group(2) or ""
