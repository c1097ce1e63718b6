"""Compares the arguments of a job with the kernel's parameters: number, order, types, direction."""

import difflib
import re
from collections.abc import Iterator, Mapping

from warpsmith.domain.arguments.argument import Argument, Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.source_text import code_of
from warpsmith.extensions.scaffold.lines.arguments import SAMPLER
from warpsmith.extensions.scaffold.reading.pointer_usage import pointer_usage
from warpsmith.job_files.finding import Finding
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.kernels.kernel_definitions import KernelDefinition

_FIELD = "kernel.arguments"
_TYPES = ("float", "double", "half", "int", "char", "short", "long", "bool", "void", "signed", "unsigned")


def argument_findings(
    job: Job, kernel: KernelDefinition, types: Mapping[str, str], certain: bool
) -> Iterator[Finding]:
    """Findings about arguments that do not match the kernel.

    Args:
        types: type words: names that stand for a type: macros, and the arguments of the kernel's template.
        certain: `types` is complete; if False, a mismatch behind such a name is a warning only.
    """
    wanted = kernel.arguments
    if any("..." in a.type_text for a in wanted):
        return
    given = job.kernel.arguments
    if len(given) != len(wanted):
        yield _count(given, kernel)
        return
    moved = dict(_moved(given, wanted))
    for n, (argument, a) in enumerate(zip(given, wanted, strict=True)):
        if n in moved:
            # A misplaced argument moves others.
            if n == min(moved):
                yield Finding(f"{_FIELD}.{n}.name", moved[n])
        else:
            yield from _one(f"{_FIELD}.{n}", argument, a, kernel, types, certain)
        if certain and a.dtype is None and a.base not in {*types, *job.space.defaults}:
            yield from _misspelt(a, kernel, job.kernel.source or "")


def _misspelt(a: KernelArgument, kernel: KernelDefinition, source: str) -> Iterator[Finding]:
    """An error for a type that no header can declare, is declared nowhere, and is nearly a built-in one."""
    near = difflib.get_close_matches(a.base, _TYPES, n=1, cutoff=0.75) if a.base.isalpha() else [a.base]
    # A declaration has a sign after the name, or says before it what is declared.
    declares = rf"\b(?:struct|class|union|enum|using|typename|define)\s+{a.base}\b|\b{a.base}\s*+[^\s*&\w]"
    if near and near[0] != a.base and not re.search(declares, code_of(source, characters=False)):
        words = f"`{_declared(a)}` in line {kernel.line}: no type is called {a.base}"
        yield Finding("kernel.source", f"{words}; did you mean {near[0]!r}?", inner_line=kernel.line)


def _count(given: tuple[Argument, ...], kernel: KernelDefinition) -> Finding:
    wanted = kernel.arguments
    names = ", ".join(a.name or a.type_text for a in wanted)
    here = {a.name for a in given}
    lacking = [a.name for a in wanted if a.name and a.name not in here]
    words = (
        f"lists {len(given)}; {kernel.name} takes {len(wanted)} ({names}), line {kernel.line} of the source"
    )
    if len(given) < len(wanted):
        return Finding(_FIELD, words + (f"; missing: {', '.join(lacking)}" if lacking else ""))
    known = {a.name for a in wanted}
    beyond = {n: a.name for n, a in enumerate(given) if a.name not in known}
    if not beyond:
        return Finding(_FIELD, words)
    return Finding(f"{_FIELD}.{min(beyond)}", f"{words}; not one of them: {', '.join(beyond.values())}")


def _moved(given: tuple[Argument, ...], wanted: tuple[KernelArgument, ...]) -> Iterator[tuple[int, str]]:
    """Arguments in the place of another argument, if both names are among the kernel's parameters."""
    places = {a.name: n for n, a in enumerate(wanted) if a.name}
    at = {a.name: n for n, a in enumerate(given)}
    order = ", ".join(a.name for a in wanted)
    for n, (argument, a) in enumerate(zip(given, wanted, strict=True)):
        if argument.name != a.name and argument.name in places and a.name in at:
            words = f"{argument.name} stands at place {n + 1}, where the kernel takes {a.name}"
            yield n, f"{words}; its order is {order}"


def _one(
    field: str,
    given: Argument,
    a: KernelArgument,
    kernel: KernelDefinition,
    types: Mapping[str, str],
    certain: bool,
) -> Iterator[Finding]:
    base = _resolved(a.base, types)
    dtype, lanes = element_type(base.replace("*", "").replace("const", "").strip(), {})
    direct = certain or (a.base not in types and dtype is not None)
    if dtype is None:
        dtype, lanes = a.dtype, a.lanes
    kind = f"`{_declared(a)}` in line {kernel.line} of the source"
    if a.base == "sampler_t" or a.is_image or given.image is not None:
        yield from _image(field, given, a, kind)
        return
    misplaced = _misplaced(field, given, a, kind)
    if misplaced is not None:
        yield misplaced
        return
    points = a.pointers + base.count("*")
    number = None if a.is_reference else dtype
    if given.role in (Role.STRUCT, Role.POINTER, Role.POINTERS) or given.values:
        yield from _special(field, given, points, number, lanes, kind)
        return
    mistaken = _mistaken(field, given, points, number is not None, kind)
    if mistaken is not None:
        yield mistaken
        return
    if number is not None:
        yield from _types(field, given, number, lanes, kind, direct)
    if points:
        yield from _direction(field, given, a, kernel, kind)


def _misplaced(field: str, given: Argument, a: KernelArgument, kind: str) -> Finding | None:
    """Finding about memory of a work-group that is none in the kernel, or the other way round."""
    is_local = given.role is Role.LOCAL
    if a.address_space == "local":
        words = f"{given.name} is memory of a work-group: {kind}; its role is local"
        return None if is_local else Finding(f"{field}.role", words)
    if is_local and (a.address_space or not a.pointers):
        return Finding(f"{field}.role", f"{given.name} is local here, and not in the kernel: {kind}")
    return None


def _resolved(base: str, types: Mapping[str, str]) -> str:
    """The type that a name stands for, through at most eight other names."""
    for _ in range(8):
        if base not in types:
            break
        base = types[base]
    return base


def _mistaken(field: str, given: Argument, points: int, is_number: bool, kind: str) -> Finding | None:
    """Finding about a scalar that the kernel takes as a pointer, or a buffer that it takes otherwise.

    Args:
        points: how many pointers the kernel's parameter has.
        is_number: without pointers it is a number for sure.
    """
    if given.role is Role.SCALAR and points:
        return Finding(f"{field}.role", f"{given.name} is a scalar here and a pointer in the kernel: {kind}")
    if given.role is not Role.SCALAR and not points and is_number:
        return Finding(f"{field}.role", f"{given.name} is a buffer here and a number in the kernel: {kind}")
    if points > 1 and given.role is not Role.SCALAR:
        return Finding(
            f"{field}.role", f"{given.name} is an array of addresses: {kind}; its role is pointers"
        )
    return None


def _special(
    field: str, given: Argument, points: int, dtype: Dtype | None, lanes: int, kind: str
) -> Iterator[Finding]:
    """Findings about a vector, a struct, an address or an array of addresses.

    Args:
        dtype: type of the numbers that the kernel's parameter is, or points to; None: unknown.
    """
    pointer = given.role in (Role.POINTER, Role.POINTERS)
    if pointer != bool(points):
        have = "an address here and a value" if pointer else f"{_VALUE[given.role]} here and a pointer"
        yield Finding(f"{field}.role", f"{given.name} is {have} in the kernel: {kind}")
    elif given.role is Role.POINTERS and points == 1 and dtype is not None and dtype.size_bytes != 8:
        words = f"{given.name} holds addresses of 8 bytes here, and {dtype.value} in the kernel: {kind}"
        yield Finding(f"{field}.role", words)
    elif given.role is Role.STRUCT and dtype is not None:
        word = "number" if lanes == 1 else "vector (values)"
        yield Finding(f"{field}.role", f"{given.name} is a struct here and a {word} in the kernel: {kind}")
    elif given.values and dtype is not None and len(given.values) != lanes:
        words = f"{given.name} has {len(given.values)} values here, and {lanes} in the kernel: {kind}"
        yield Finding(f"{field}.values", words)
    elif given.values and dtype is not None and dtype.is_float != given.dtype.is_float:
        words = f"{given.name} is {given.dtype.value} here, and {dtype.value} in the kernel: {kind}"
        yield Finding(f"{field}.dtype", words)


_VALUE = {Role.STRUCT: "a struct", Role.SCALAR: "a vector"}


def _image(field: str, given: Argument, a: KernelArgument, kind: str) -> Iterator[Finding]:
    if a.base == "sampler_t":
        words = f"{given.name} is a sampler, which a job cannot pass; declare it in the kernel: {SAMPLER}"
        yield Finding(field, f"{words} ({kind})")
    elif a.is_image and (not a.image_axes or a.access == "read_write"):
        words = f"{given.name} is an image that a job cannot pass: {kind}; an image2d_t or image3d_t that is "
        yield Finding(field, f"{words}read_only or write_only can be passed, and so can buffers")
    elif a.image_axes and given.image is None:
        words = f"{given.name} is an image in the kernel: {kind}; say image: {{channels: rgba}}, for example"
        yield Finding(f"{field}.image", words)
    elif not a.image_axes:
        yield Finding(f"{field}.image", f"{given.name} is an image here, and not in the kernel: {kind}")
    elif len(given.shape) != a.image_axes + 1:
        words = f"{given.name} has {len(given.shape)} extents; {a.base} has {a.image_axes + 1}, channels last"
        yield Finding(f"{field}.shape", f"{words}: {kind}")
    elif (given.role is Role.OUTPUT) != (a.access == "write"):
        can = "write_only" if a.access == "write" else "read_only"
        yield Finding(
            f"{field}.role", f"{given.name} is {given.role.value} here, and {can} in the kernel: {kind}"
        )


def _types(
    field: str, given: Argument, wanted: Dtype, lanes: int, kind: str, direct: bool
) -> Iterator[Finding]:
    have = given.dtype
    if have is wanted:
        return
    same_bits = have.size_bytes == wanted.size_bytes and not wanted.is_float
    raw = given.is_buffer and (wanted.size_bytes == 1 or (lanes > 1 and not wanted.is_float))
    if same_bits and (given.is_buffer or not have.is_float):
        return
    words = f"argument {given.name} is {have.value} here, and {wanted.value} in the kernel: {kind}"
    yield Finding(f"{field}.dtype", words, is_error=direct and not raw)


def _direction(
    field: str, given: Argument, a: KernelArgument, kernel: KernelDefinition, kind: str
) -> Iterator[Finding]:
    if given.is_mutated and (a.is_const or a.address_space == "constant"):
        words = f"{given.name} is {given.role.value}, but the kernel cannot write it: {kind}"
        yield Finding(f"{field}.role", words)
        return
    usage = pointer_usage(kernel.body, a.name) if a.name else None
    if usage is None or usage.is_passed_on or not (usage.is_read or usage.is_written):
        return
    if given.role is Role.INPUT and usage.is_written:
        words = f"{given.name} is input, but the kernel writes it: {kind}; use output or inout"
        yield Finding(f"{field}.role", words, is_error=False)
    elif given.is_mutated and not usage.is_written:
        words = f"{given.name} is {given.role.value}, but the kernel only reads it: {kind}"
        yield Finding(f"{field}.role", words, is_error=False)


def _declared(a: KernelArgument) -> str:
    space = {"global": "__global ", "constant": "__constant ", "local": "__local "}.get(a.address_space, "")
    return re.sub(r"\s+", " ", f"{space}{a.type_text} {a.name}".strip())
