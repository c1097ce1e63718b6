"""Declarations by which the compiler checks that structs lie in memory as the job says."""

from collections.abc import Iterator, Sequence

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.arguments.field import Field, FieldRole
from warpsmith.domain.arguments.layout import offsets, struct_extent
from warpsmith.domain.device import Backend
from warpsmith.domain.kernels.kernel import Kernel


def layout_checks(kernel: Kernel) -> str:
    """Text to compile behind a kernel's source: fails where a struct with a named type is laid out otherwise.

    An error names the argument, the field and the byte at which the job has it.
    """
    lines: list[str] = []
    for argument in kernel.arguments:
        if argument.role is Role.STRUCT:
            lines += _of_struct(argument.as_field(), argument.name, kernel.backend)
    return "".join(f"\n{line}" for line in lines) + "\n" * bool(lines)


def _of_struct(field: Field, name: str, backend: Backend) -> Iterator[str]:
    if field.type is not None:
        size = struct_extent(field.fields, backend, field.align).size_bytes
        yield _check(f"sizeof({field.type}) == {size}", f"{name} has {size} bytes in the job", backend)
        yield from _of_members(field.type, field.fields, name, backend)
    for inner in field.fields:
        if inner.role is FieldRole.STRUCT:
            yield from _of_struct(inner, f"{name}.{inner.name}", backend)


def _of_members(type_name: str, fields: Sequence[Field], name: str, backend: Backend) -> Iterator[str]:
    for field, offset in zip(fields, offsets(fields, backend), strict=True):
        place = backend.language.offset_of.format(type_name, field.name)
        yield _check(f"{place} == {offset}", f"{name}.{field.name} is at byte {offset} in the job", backend)


def _check(condition: str, words: str, backend: Backend) -> str:
    identifier = "".join(c if c.isalnum() else "_" for c in words)
    return backend.language.assertion.format(condition=condition, words=words, identifier=identifier)
