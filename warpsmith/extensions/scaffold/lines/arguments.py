"""The lines of a scaffold for a kernel's arguments and dimensions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import FUNCTIONS
from warpsmith.extensions.scaffold.argument_line import ZEROS, ArgumentLine, Fields
from warpsmith.extensions.scaffold.guesses import (
    DEFAULT_EXTENT,
    Bindings,
    dimension_name,
    extent,
    scalar_value,
)
from warpsmith.extensions.scaffold.indices.index_space import IndexSpace
from warpsmith.extensions.scaffold.lines.element_uses import cast_types, is_under_root
from warpsmith.extensions.scaffold.lines.structs import StructWriter
from warpsmith.extensions.scaffold.reading.pointer_usage import pointer_usage
from warpsmith.extensions.scaffold.yaml_text import TODO
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.declarations.type_words import element_type
from warpsmith.source.kernels.kernel_definitions import KernelDefinition
from warpsmith.source.lexing.tokens import blank

SAMPLER = "const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST"
"""Declaration in a kernel that replaces a sampler argument."""
_MAX_DIMENSIONS = 16
_INDICES = re.compile(
    r"id(?:x|s|_|$)|ind(?:ex|ices|ptr)|offset|table|pos|len|map|slot|perm|cu_|sort|order", re.I
)
_PIXELS = tuple(
    re.compile(p, re.I) for p in (r"d(?:epth)?", r"h(?:eight)?|rows?", r"w(?:idth)?|col(?:umn)?s?")
)
_CHANNEL = {"f": Dtype.FLOAT32, "i": Dtype.INT32, "ui": Dtype.UINT32, "h": Dtype.FLOAT16}
_ROLES = {(True, False): Role.INPUT, (False, True): Role.OUTPUT, (True, True): Role.INOUT}
"""Roles by whether a kernel reads, and whether it writes a buffer."""
_READ_ONLY = (True, False)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ABOVE_ZERO: Fields = {"distribution": "uniform", "low": 0.1, "high": 1}


@dataclass(frozen=True)
class Sizes:
    """Sizes of a kernel's launch and buffers, as names of dimensions."""

    dimensions: Mapping[str, tuple[str, int]]
    """The dimension that an argument stands for, and its placeholder, by the argument's name."""
    space: IndexSpace = field(default_factory=IndexSpace)
    """Launch and buffers as the kernel's text shows them."""

    def of(self, buffer: str) -> list[str]:
        """Extents of a buffer; the first dimension if nothing is known."""
        known = self.named(self.space.shapes.get(buffer, ()))
        return known or [next(iter(self.dimensions.values()))[0]]

    def named(self, extents: Sequence[str]) -> list[str]:
        """Extents over dimensions in the place of the arguments that hold them; none if one is missing."""
        held = {dimension_name(a): name for a, (name, _) in self.dimensions.items()}
        words = {w for e in extents for w in _WORD.findall(e)} - FUNCTIONS.keys()
        if not words <= held.keys() | set(held.values()):
            return []
        return [_WORD.sub(lambda m: held.get(m.group(), m.group()), e) for e in extents]

    def said(self, buffer: str) -> str:
        """The reason for a buffer's shape; empty if the shape is a guess."""
        sure = buffer in self.space.sure and self.named(self.space.shapes[buffer])
        return self.space.reasons[buffer] if sure else ""


def dimensions_of(kernel: KernelDefinition, space: IndexSpace) -> dict[str, tuple[str, int]]:
    """Names and placeholder sizes of dimensions by the argument that holds them; those of buffers first."""
    found = {n: (n, size) for n, size in space.dimensions.items()}
    held = [(a.name, d) for a in kernel.arguments if (d := _dimension_held(a, space)) is not None]
    own = dict(held[: max(_MAX_DIMENSIONS - 1 - len(found), 0)])
    buffers = {a.name for a in kernel.arguments if a.is_pointer or a.is_image}
    if (found or own) and buffers and buffers <= space.shapes.keys():
        first = {a: own[a] for a in own if own[a][0] in space.named}
        return {**first, **found, **own}
    other = {a.name for a in kernel.arguments} - own.keys() - found.keys()
    name = "elements" if "n" in other else "n"
    guess = own.pop(name, found.pop(name, (name, DEFAULT_EXTENT)))
    return {name: guess, **found, **own}


def _dimension_held(a: KernelArgument, space: IndexSpace) -> tuple[str, int] | None:
    """Name and placeholder size of the dimension that an argument holds; None if it holds none."""
    if a.dtype is None or a.dtype.is_float or a.lanes > 1 or a.is_pointer:
        return None
    name, size = dimension_name(a.name), None if a.is_reference else extent(a)
    if size is None and name not in space.named:
        return None
    return name, size or _size_of_named(a)


def _size_of_named(a: KernelArgument) -> int:
    """A placeholder for an argument of a shape whose name is not that of a size."""
    return DEFAULT_EXTENT if re.search(r"stride|pitch|step", a.name, re.I) else 1


@dataclass(frozen=True)
class _Elements:
    """The type of an argument, or of the elements that it points to."""

    dtype: Dtype | None
    lanes: int
    guess: Dtype | None = Dtype.UINT8
    """The type to write if it is not known; None: there is none."""

    def extent(self, text: str) -> str:
        """Elements along the last axis as numbers, which are as many for each as it has lanes."""
        return f"{self.lanes} * {_factor(text)}" if self.lanes > 1 else text


def _elements(a: KernelArgument, kernel: KernelDefinition, bindings: Bindings) -> _Elements:
    if a.base == "void" and a.pointers == 1 and a.name:
        casts = cast_types(kernel.body, a.name, bindings.values)
        dtype, lanes = casts[0] if len(casts) == 1 else (None, 1)
        return _Elements(dtype, lanes, casts[0][0] if casts else None)
    if a.dtype is None and a.base in bindings.values:
        return _Elements(*element_type(bindings.values[a.base], {}))
    return _Elements(a.dtype, a.lanes, None if a.base == "void" else Dtype.UINT8)


def argument_line(
    position: int,
    a: KernelArgument,
    kernel: KernelDefinition,
    bindings: Bindings,
    sizes: Sizes,
    structs: StructWriter,
) -> ArgumentLine:
    """The line of a job file for one argument, with a note if a person must decide.

    Args:
        position: index in the kernel's list; names an argument that has no name.
        bindings: types chosen for the template parameters.
        structs: writes structs by value.
    """
    name = a.name or f"argument_{position}"
    elements = _elements(a, kernel, bindings)
    if a.image_axes and a.access != "read_write":
        return _image(name, a, kernel, sizes.dimensions)
    if elements.dtype is None and not (a.is_pointer or a.is_reference or a.is_image):
        found = structs.written(name, a.base, bindings.values)
        if found is not None:
            return found
    cannot = _inexpressible(a, elements.dtype)
    if cannot:
        rest: Fields = {"role": "input", "shape": [1]} if a.is_pointer else {"role": "scalar", "value": 0}
        fields: Fields = {"name": name, "dtype": TODO, **rest}
        known = {} if a.pointers > 1 else {"dtype": f"`{a.type_text}` {cannot}"}
        return ArgumentLine(fields, "" if known else f"{TODO}: `{a.type_text}` {cannot}", doubts=known)
    if not a.is_pointer:
        return _scalar(name, a, elements, sizes)
    if a.address_space == "local":
        return _local(name, a, elements, sizes)
    return _buffer(name, a, elements, kernel, sizes)


def _scalar(name: str, a: KernelArgument, elements: _Elements, sizes: Sizes) -> ArgumentLine:
    assert elements.dtype is not None
    fields: Fields = {"name": name, "dtype": elements.dtype.value, "role": "scalar"}
    if elements.lanes > 1:
        words = f"{TODO}: `{a.type_text}`; the value of each lane"
        return ArgumentLine({**fields, "values": [1] * elements.lanes}, words)
    if a.name in sizes.dimensions:
        return ArgumentLine({**fields, "value": sizes.dimensions[a.name][0]})
    said = f"`{a.type_text}`; " if a.dtype is None else ""
    is_free = a.name in sizes.space.free
    comment = "any value: it decides no branch and no index" if is_free else ""
    doubts = {} if is_free else {"value": f"{said}its value"}
    return ArgumentLine({**fields, "value": scalar_value(a)}, comment, doubts=doubts)


def _inexpressible(a: KernelArgument, dtype: Dtype | None) -> str:
    """The reason why a job cannot pass an argument; empty if it can."""
    if a.base == "sampler_t":
        return f"is a sampler, which a job cannot pass; declare it in the kernel: {SAMPLER}"
    if a.is_image:
        return "is an image that a job cannot pass; write a kernel of image2d_t, image3d_t or buffers"
    if a.is_reference:
        return "is a reference; a job passes buffers and numbers"
    if a.pointers > 1:
        return "is a pointer to pointers: role pointers, a buffer for each address (docs/arguments.md)"
    if not a.is_pointer and dtype is None:
        return (
            "is passed by value and is no number that is known here: an enumeration is an int32; a struct "
            "has role struct and its fields (docs/arguments.md)"
        )
    return ""


def _local(name: str, a: KernelArgument, elements: _Elements, sizes: Sizes) -> ArgumentLine:
    dtype = elements.dtype
    reason = sizes.said(a.name) if dtype is not None else ""
    unit = "elements" if dtype is not None else f"bytes, of `{a.type_text}`,"
    words = f"{TODO}: {unit} that a work-group needs; here as many as it has work-items"
    extents = sizes.of(a.name) if reason else [n for n in sizes.space.block if n != "1"]
    shape = elements.extent(" * ".join(map(_factor, extents)) or "1")
    fields = {"name": name, "dtype": (dtype or Dtype.UINT8).value, "role": "local", "shape": [shape]}
    return ArgumentLine(fields, f"shape {reason}" if reason else words)


def _factor(text: str) -> str:
    """An expression as a factor."""
    return f"({text})" if re.search(r" [-+] ", text) and not text.endswith(")") else text


def _image(
    name: str, a: KernelArgument, kernel: KernelDefinition, dimensions: Mapping[str, tuple[str, int]]
) -> ArgumentLine:
    first = next(iter(dimensions.values()))[0]
    named = [
        next((n for own, (n, _) in dimensions.items() if pattern.fullmatch(own)), first)
        for pattern in _PIXELS[3 - a.image_axes :]
    ]
    role = Role.OUTPUT if a.access == "write" else Role.INPUT
    used = re.search(rf"\b(?:read|write)_image(f|i|ui|h)\s*\(\s*{re.escape(a.name)}\b", kernel.body)
    dtype = _CHANNEL[used.group(1) if used else "f"]
    words = "[depth, height, width, channels]" if a.image_axes == 3 else "[height, width, channels]"
    fields: Fields = {"name": name, "dtype": dtype.value, "role": role.value, "shape": [*named, 4]}
    fields["image"] = {"channels": "rgba"}
    return ArgumentLine(fields, f"{TODO}: {words}; channels, and the type of one", role is Role.OUTPUT)


def _buffer(
    name: str, a: KernelArgument, elements: _Elements, kernel: KernelDefinition, sizes: Sizes
) -> ArgumentLine:
    role, doubt = buffer_role(a, kernel, sizes.space)
    reason = sizes.said(a.name)
    is_drawn = role is not Role.OUTPUT
    holds_indices = is_drawn and _holds_indices(a.name, elements.dtype, sizes.space)
    of_type, doubt_of_type = _said_of_type(a, elements)
    doubts = {
        "shape": "" if reason else "shape",
        "dtype": doubt_of_type,
        "role": doubt,
        "draw": "which numbers it may hold (draw)" if holds_indices else "",
    }
    said = "; ".join(filter(None, (of_type, f"shape {reason}" if reason else "")))
    *outer, last = sizes.of(a.name)
    known = elements.dtype or elements.guess
    draw = _draw(a, elements, kernel, holds_indices) if is_drawn else None
    fields: Fields = {"name": name, "dtype": known.value if known else TODO, "role": role.value}
    fields["shape"] = [*outer, elements.extent(last)]
    if draw:
        fields["draw"] = draw
    kept = {field: words for field, words in doubts.items() if words}
    return ArgumentLine(fields, said, role is not Role.INPUT, doubts=kept)


def _draw(
    a: KernelArgument, elements: _Elements, kernel: KernelDefinition, holds_indices: bool
) -> Fields | None:
    """The draw of a buffer's values; None for the usual one."""
    if elements.dtype is None:
        return ZEROS if elements.guess else None
    if holds_indices:
        return ZEROS
    positive = elements.dtype.is_float and a.name and is_under_root(kernel.body, a.name)
    return _ABOVE_ZERO if positive else None


def _holds_indices(name: str, dtype: Dtype | None, space: IndexSpace) -> bool:
    """True if a buffer's elements decide what memory is used; by its name where that is not understood."""
    if dtype is None or dtype.is_float or dtype is Dtype.BOOL:
        return False
    understood = name in space.sure and space.shapes.keys() <= space.sure
    return name in space.indirect or (not understood and _INDICES.search(name) is not None)


def _may_be_stored(body: str, name: str) -> bool:
    """True if an element is handed to what may be a macro that assigns to it."""
    inner = r"(?:[^();]|\([^();]*\))*"
    return re.search(rf"\b[A-Z]\w*\s*\({inner}\b{re.escape(name)}\s*\[", blank(body)) is not None


def buffer_role(
    a: KernelArgument, kernel: KernelDefinition, space: IndexSpace | None = None
) -> tuple[Role, str]:
    """The role of a buffer, as the body shows it, and in words what else it may be; empty if it is sure."""
    if a.is_const or a.address_space == "constant":
        return Role.INPUT, ""
    shown = (space or IndexSpace()).usage.get(a.name, (False, False))
    if shown == _READ_ONLY and _may_be_stored(kernel.body, a.name):
        return Role.INOUT, "input, if no macro assigns to it"
    if any(shown):
        return _ROLES[shown], ""
    usage = pointer_usage(kernel.body, a.name) if a.name else None
    if usage is None or usage.is_passed_on or usage.is_written == usage.is_read:
        sure = usage is not None and usage.is_written and usage.is_read
        return Role.INOUT, "" if sure else "output, if it is only written; input, if it is only read"
    return (Role.OUTPUT if usage.is_written else Role.INPUT), ""


def _said_of_type(a: KernelArgument, elements: _Elements) -> tuple[str, str]:
    """The type as the kernel has it if the form's type does not show it: as a note, or as a doubt."""
    if elements.dtype is None:
        return "", f"{'the type of its elements' if a.base == 'void' else 'bytes'} of `{a.type_text}`"
    return (f"`{a.type_text}`" if elements.lanes > 1 or a.dtype is None else ""), ""
