"""Places in memory of members of structs and arguments of kernels, by the rules of C."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith.domain.arguments.field import Field, FieldRole
from warpsmith.domain.device import Backend
from warpsmith.domain.expressions import next_pow2, round_up

POINTER_BYTES = 8
MAX_ALIGNMENT = 16
"""Largest alignment of a CUDA vector in bytes."""


@dataclass(frozen=True)
class MemoryLayout:
    """Bytes that something takes, and the multiple of bytes at which it begins."""

    size_bytes: int
    align: int


@dataclass(frozen=True)
class Placed:
    """A number, a vector, a pointer, or an array of them, at its place in a struct."""

    path: tuple[int, ...]
    """Index of the field, after the indices of the structs around it."""
    field: Field
    offset_bytes: int
    stride_bytes: int
    """From one element of an array to the next."""


def extent_of(field: Field, backend: Backend) -> MemoryLayout:
    """Size and alignment of a field, with all elements if it is an array."""
    one = _element(field, backend)
    align = max(one.align, field.align or 1)
    return MemoryLayout(one.size_bytes * (field.count or 1), align)


def struct_extent(fields: Sequence[Field], backend: Backend, align: int | None = None) -> MemoryLayout:
    """Size and alignment of a struct with these members; an empty one has a byte."""
    at, widest = 0, align or 1
    for field in fields:
        part = extent_of(field, backend)
        at = round_up(at, part.align) + part.size_bytes
        widest = max(widest, part.align)
    return MemoryLayout(round_up(max(at, 1), widest), widest)


def offsets(fields: Sequence[Field], backend: Backend) -> list[int]:
    """Byte of the struct at which each member begins."""
    at, found = 0, []
    for field in fields:
        part = extent_of(field, backend)
        at = round_up(at, part.align)
        found.append(at)
        at += part.size_bytes
    return found


def placed(
    fields: Sequence[Field], backend: Backend, base: int = 0, path: tuple[int, ...] = ()
) -> Iterator[Placed]:
    """Every number and pointer of a struct, in order; those of each element if a struct is an array."""
    for n, (field, offset) in enumerate(zip(fields, offsets(fields, backend), strict=True)):
        stride = _element(field, backend).size_bytes
        if field.role is not FieldRole.STRUCT:
            yield Placed((*path, n), field, base + offset, stride)
            continue
        for element in range(field.count or 1):
            yield from placed(field.fields, backend, base + offset + element * stride, (*path, n))


def _element(field: Field, backend: Backend) -> MemoryLayout:
    """Size and alignment of one element, as an array has it."""
    if field.role is FieldRole.POINTER:
        return MemoryLayout(POINTER_BYTES, POINTER_BYTES)
    if field.role is FieldRole.STRUCT:
        return struct_extent(field.fields, backend, field.align)
    assert field.dtype is not None
    return vector_extent(field.dtype.size_bytes, field.lanes, backend)


def vector_extent(size_bytes: int, lanes: int, backend: Backend) -> MemoryLayout:
    """Size and alignment of a vector: `uint3` has 12 bytes in CUDA and 16 in OpenCL."""
    if backend.language.pads_vectors:
        whole = size_bytes * next_pow2(lanes)
        return MemoryLayout(whole, whole)
    whole = size_bytes * lanes
    return MemoryLayout(whole, size_bytes if lanes == 3 else min(whole, MAX_ALIGNMENT))
