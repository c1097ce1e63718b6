"""The lines of a skeleton for structs that a kernel takes by value."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.extensions.scaffold.guesses import extent, scalar_value
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_word
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.declarations.struct_declarations import (
    Member,
    Struct,
    StructIndex,
    extent_of,
    spelt,
)
from warpsmith.source.declarations.type_words import element_type

_DEEPEST = 6
_WITHOUT_MEMBERS = re.compile(
    r"(?:::)?(?:cuda::)?std::(?:(?:bool|integral)_constant<.*>|true_type|false_type|monostate)",
    re.S,
)
"""Types of the standard library that hold nothing."""


@dataclass(frozen=True)
class StructText:
    """A struct as an argument of a job."""

    fields: str
    buffers: tuple[str, ...]
    """Buffers that its pointers lead to, each as the fields of a mapping."""
    is_written: bool
    """True if one of the buffers may be written."""
    unknown: tuple[str, ...]
    """What a person must supply, in words: members whose type no source here declares."""


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
    buffers: list[str] = field(default_factory=list)
    is_written: bool = False
    unknown: list[str] = field(default_factory=list)

    def written(self, name: str, type_text: str, names: Mapping[str, str]) -> StructText | None:
        """The argument of a type; None if no struct of this name is known.

        Args:
            names: types and values of the kernel's template parameters.
        """
        whole = spelt(type_text, names)
        if _WITHOUT_MEMBERS.fullmatch(whole):
            kind = f", type: {yaml_word(whole)}"
            return StructText(f"name: {yaml_word(name)}, role: struct{kind}, fields: []", (), False, ())
        found = self.index.find(whole)
        if found is None:
            return None
        struct, parameters = found
        members = self._fields(struct, parameters, name, 1)
        # The compiler checks the layout only of members that it may name.
        kind = (
            ""
            if self._has_private(struct, parameters, 1)
            else f", type: {yaml_word(_named(struct, parameters))}"
        )
        listed = "".join(f",\n         {{{m}}}" for m in members).removeprefix(",")
        kind += self._align(struct, parameters, name)
        text = f"name: {yaml_word(name)}, role: struct{kind}, fields: [{listed}]"
        return StructText(text, tuple(self.buffers), self.is_written, tuple(self.unknown))

    def _fields(self, struct: Struct, names: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            self.unknown.append(f"{path} lies {depth} structs deep")
            return
        for base in struct.bases:
            found = self.index.find(spelt(base, names))
            if found is None:
                self.unknown.append(f"the base `{base}` of {path}")
                yield f"name: base, dtype: {TODO}, value: 0"
            else:
                yield from self._fields(*found, path, depth + 1)
        for member in struct.members:
            yield self._member(member, names, path, depth)
        if struct.unread:
            self.unknown.append(f"`{struct.unread}` in {path}, and what follows it")

    def _member(self, member: Member, names: Mapping[str, str], path: str, depth: int) -> str:
        declared = member.declared
        place = f"{path}.{declared.name}"
        count = self._count(member, names, place)
        base = spelt(declared.base, names)
        dtype, lanes = element_type(base, self.index.aliases)
        name = f"name: {yaml_word(declared.name)}"
        counted = f", count: {count}" if count else ""
        if declared.is_pointer and declared.pointers == 1:
            target = self._buffer(replace(declared, dtype=dtype, lanes=lanes), place)
            return f"{name}, role: pointer, to: {target}{counted}"
        if dtype is None and base.rpartition("::")[2] in self.enumerations:
            dtype = Dtype.INT32
        if dtype is not None and not (declared.is_pointer or declared.is_reference):
            return f"{name}, dtype: {dtype.value}, {_value(replace(declared, dtype=dtype), lanes)}{counted}"
        found = None if declared.is_pointer or declared.is_reference else self.index.find(base)
        if found is None:
            self.unknown.append(f"{place}, a `{declared.type_text}`")
            return f"{name}, dtype: {TODO}, value: 0{counted}"
        inner = ", ".join(f"{{{m}}}" for m in self._fields(*found, place, depth + 1))
        return f"{name}, role: struct{self._align(*found, place)}, fields: [{inner}]{counted}"

    def _align(self, struct: Struct, names: Mapping[str, str], place: str) -> str:
        if not struct.align:
            return ""
        value = extent_of(spelt(struct.align, names), names, self.index.constants)
        if value is None:
            self.unknown.append(f"the alignment {struct.align} of {place}")
            return ""
        return f", align: {value}"

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
        shape = f'"{declared.lanes} * {self.size}"' if declared.lanes > 1 else self.size
        whole = declared.dtype is not None and not declared.dtype.is_float
        draw = ", draw: {distribution: constant, low: 0}" if whole or declared.dtype is None else ""
        self.buffers.append(f"name: {name}, dtype: {dtype}, role: {role.value}, shape: [{shape}]{draw}")
        return name

    def _has_private(self, struct: Struct, names: Mapping[str, str], depth: int) -> bool:
        if struct.has_private or depth > _DEEPEST:
            return True
        inner = [
            *(self.index.find(spelt(base, names)) for base in struct.bases),
            *(self.index.find(spelt(m.declared.base, names)) for m in struct.members),
        ]
        return any(self._has_private(*found, depth + 1) for found in inner if found is not None)


def _value(declared: KernelArgument, lanes: int) -> str:
    if lanes > 1:
        return f"values: [{', '.join(['1'] * lanes)}]"
    size = None if declared.dtype is not None and declared.dtype.is_float else extent(declared)
    return f"value: {scalar_value(declared) if size is None else size}"


def _named(struct: Struct, parameters: Mapping[str, str]) -> str:
    given = [parameters[p.name] for p in struct.template if parameters.get(p.name)]
    return f"{struct.name}<{', '.join(given)}>" if given else struct.name
