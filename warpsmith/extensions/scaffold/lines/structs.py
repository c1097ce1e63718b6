"""The lines of a scaffold for structs that a kernel takes by value."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.extensions.scaffold.argument_line import ZEROS, ArgumentLine, Fields
from warpsmith.extensions.scaffold.guesses import extent, scalar_value
from warpsmith.extensions.scaffold.reading.struct_declarations import (
    Member,
    Struct,
    StructIndex,
    extent_of,
    spelt,
)
from warpsmith.extensions.scaffold.yaml_text import TODO
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.declarations.type_words import element_type

_DEEPEST = 6
_OPEN = f"{TODO}: values, and the buffers below"
_WITHOUT_MEMBERS = re.compile(
    r"(?:::)?(?:cuda::)?std::(?:(?:bool|integral)_constant<.*>|true_type|false_type|monostate)", re.S
)
"""Types of the standard library that hold nothing."""


@dataclass
class StructWriter:
    """Writes one argument.

    Args:
        index: structs of the source and its headers.
        enumerations: names of enumerations, which are passed as int32.
        size: dimension that stands for the extent of a buffer.
    """

    index: StructIndex
    enumerations: Mapping[str, str]
    size: str
    buffers: list[Fields] = field(default_factory=list)
    is_written: bool = False
    unknown: list[str] = field(default_factory=list)
    """Members that a person must supply, in words: no source here declares their type."""

    def written(self, name: str, type_text: str, names: Mapping[str, str]) -> ArgumentLine | None:
        """The argument of a type; None if no struct of this name is known.

        Args:
            names: types and values of the kernel's template parameters.
        """
        whole = spelt(type_text, names)
        if _WITHOUT_MEMBERS.fullmatch(whole):
            fields: Fields = {"name": name, "role": "struct", "type": whole, "fields": []}
            return ArgumentLine(fields, _OPEN)
        found = self.index.find(whole)
        if found is None:
            return None
        struct, parameters = found
        # The compiler checks the layout only of members that it may name.
        checked = not self._has_private(struct, parameters, 1)
        kind = {"type": _named(struct, parameters)} if checked else {}
        members = list(self._fields(struct, parameters, name, 1))
        align = self._align(struct, parameters, name)
        fields = {"name": name, "role": "struct", **kind, **align, "fields": members}
        return ArgumentLine(fields, "; ".join((_OPEN, *self.unknown)), self.is_written, tuple(self.buffers))

    def _fields(self, struct: Struct, names: Mapping[str, str], path: str, depth: int) -> Iterator[Fields]:
        if depth > _DEEPEST:
            self.unknown.append(f"{path} lies {depth} structs deep")
            return
        for base in struct.bases:
            found = self.index.find(spelt(base, names))
            if found is None:
                self.unknown.append(f"the base `{base}` of {path}")
                yield {"name": "base", "dtype": TODO, "value": 0}
            else:
                yield from self._fields(*found, path, depth + 1)
        for member in struct.members:
            yield self._member(member, names, path, depth)
        if struct.unread:
            self.unknown.append(f"`{struct.unread}` in {path}, and what follows it")

    def _member(self, member: Member, names: Mapping[str, str], path: str, depth: int) -> Fields:
        declared = member.declared
        place = f"{path}.{declared.name}"
        count = self._count(member, names, place)
        base = spelt(declared.base, names)
        dtype, lanes = element_type(base, self.index.aliases)
        name = {"name": declared.name}
        counted = {"count": count} if count else {}
        if declared.is_pointer and declared.pointers == 1:
            target = self._buffer(replace(declared, dtype=dtype, lanes=lanes), place)
            return {**name, "role": "pointer", "to": target, **counted}
        if dtype is None and base.rpartition("::")[2] in self.enumerations:
            dtype = Dtype.INT32
        if dtype is not None and not (declared.is_pointer or declared.is_reference):
            return {**name, "dtype": dtype.value, **_value(replace(declared, dtype=dtype), lanes), **counted}
        found = None if declared.is_pointer or declared.is_reference else self.index.find(base)
        if found is None:
            self.unknown.append(f"{place}, a `{declared.type_text}`")
            return {**name, "dtype": TODO, "value": 0, **counted}
        inner = list(self._fields(*found, place, depth + 1))
        return {**name, "role": "struct", **self._align(*found, place), "fields": inner, **counted}

    def _align(self, struct: Struct, names: Mapping[str, str], place: str) -> Fields:
        if not struct.align:
            return {}
        value = extent_of(spelt(struct.align, names), names, self.index.constants)
        if value is None:
            self.unknown.append(f"the alignment {struct.align} of {place}")
            return {}
        return {"align": value}

    def _count(self, member: Member, names: Mapping[str, str], place: str) -> int:
        """Elements of a fixed array; 0 for a member that is none."""
        count = 1
        for text in member.extents:
            size = extent_of(spelt(text, names), names, self.index.constants)
            if size is None:
                self.unknown.append(f"how many elements {place}[{text}] has")
            count *= size or 1
        return count if member.extents else 0

    def _buffer(self, declared: KernelArgument, place: str) -> str:
        """Declare the buffer that a pointer leads to; returns its name."""
        name = place.replace(".", "_")
        role = Role.INPUT if declared.is_const else Role.INOUT
        self.is_written |= role is Role.INOUT
        dtype = (declared.dtype or Dtype.UINT8).value
        shape = f"{declared.lanes} * {self.size}" if declared.lanes > 1 else self.size
        draw = {} if declared.dtype is not None and declared.dtype.is_float else {"draw": ZEROS}
        self.buffers.append({"name": name, "dtype": dtype, "role": role.value, "shape": [shape], **draw})
        return name

    def _has_private(self, struct: Struct, names: Mapping[str, str], depth: int) -> bool:
        if struct.has_private or depth > _DEEPEST:
            return True
        inner = [
            *(self.index.find(spelt(base, names)) for base in struct.bases),
            *(self.index.find(spelt(m.declared.base, names)) for m in struct.members),
        ]
        return any(self._has_private(*found, depth + 1) for found in inner if found is not None)


def _value(declared: KernelArgument, lanes: int) -> Fields:
    if lanes > 1:
        return {"values": [1] * lanes}
    size = None if declared.dtype is not None and declared.dtype.is_float else extent(declared)
    return {"value": scalar_value(declared) if size is None else size}


def _named(struct: Struct, parameters: Mapping[str, str]) -> str:
    given = [parameters[p.name] for p in struct.template if parameters.get(p.name)]
    return f"{struct.name}<{', '.join(given)}>" if given else struct.name
