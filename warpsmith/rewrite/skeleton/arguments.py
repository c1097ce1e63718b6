"""The lines of a skeleton for a kernel's arguments and dimensions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.argument import Role
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.expressions import FUNCTIONS
from warpsmith.rewrite.reader.declarations.argument_lists import KernelArgument
from warpsmith.rewrite.reader.declarations.type_words import element_type
from warpsmith.rewrite.reader.kernels.kernel_definitions import KernelDefinition
from warpsmith.rewrite.reader.kernels.pointer_usage import pointer_usage
from warpsmith.rewrite.reader.lexing.tokens import blank
from warpsmith.rewrite.skeleton.element_uses import cast_types, is_under_root
from warpsmith.rewrite.skeleton.guesses import DEFAULT_EXTENT, Bindings, dimension_name, extent, scalar_value
from warpsmith.rewrite.skeleton.index_space import IndexSpace
from warpsmith.rewrite.skeleton.struct_arguments import StructWriter
from warpsmith.rewrite.skeleton.yaml_text import TODO, yaml_extent, yaml_word

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
_ZEROS = "draw: {distribution: constant, low: 0}"
_WORD = re.compile(r"[A-Za-z_]\w*")
_ABOVE_ZERO = "draw: {distribution: uniform, low: 0.1, high: 1}"


@dataclass(frozen=True)
class ArgumentLine:
    """One argument of the job."""

    fields: str
    comment: str = ""
    is_written: bool = False
    buffers: tuple[str, ...] = ()
    """Buffers that the argument leads to, besides the arguments."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a kernel's launch and buffers, as names of dimensions."""

    dimensions: Mapping[str, tuple[str, int]]
    """The dimension that an argument stands for, and its placeholder, by the argument's name."""
    space: IndexSpace = field(default_factory=IndexSpace)
    """What the kernel's text says of its launch and buffers."""

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
    found: dict[str, tuple[str, int]] = {n: (n, size) for n, size in space.dimensions.items()}
    own: dict[str, tuple[str, int]] = {}
    for a in kernel.arguments:
        integer = a.dtype is not None and not a.dtype.is_float and a.lanes == 1 and not a.is_pointer
        size = extent(a) if integer and not a.is_reference else None
        is_named = integer and dimension_name(a.name) in space.named
        if (size is not None or is_named) and len(found) + len(own) < _MAX_DIMENSIONS - 1:
            own[a.name] = (dimension_name(a.name), size or _size_of_named(a))
    buffers = [a.name for a in kernel.arguments if a.is_pointer or a.is_image]
    if (found or own) and buffers and all(b in space.shapes for b in buffers):
        first = {a: own[a] for a in own if own[a][0] in space.named}
        return {**first, **found, **own}
    taken = {a.name for a in kernel.arguments}
    name = "n" if {"n"} & (own.keys() | found.keys()) or "n" not in taken else "elements"
    guess = own.pop(name, found.pop(name, (name, DEFAULT_EXTENT)))
    return {name: guess, **found, **own}


def _size_of_named(a: KernelArgument) -> int:
    """A placeholder for an argument of a shape whose name is not that of a size."""
    return DEFAULT_EXTENT if re.search(r"stride|pitch|step", a.name, re.I) else 1


def argument_line(
    position: int,
    a: KernelArgument,
    kernel: KernelDefinition,
    bindings: Bindings,
    sizes: Sizes,
    structs: StructWriter | None = None,
) -> ArgumentLine:
    """The line of a job file for one argument, with a note if a person must decide.

    Args:
        position: index in the kernel's list; names an argument that has no name.
        bindings: types chosen for the template parameters.
        structs: writes structs by value.
    """
    name = yaml_word(a.name or f"argument_{position}")
    dtype, lanes = a.dtype, a.lanes
    guess: Dtype | None = None if a.base == "void" else Dtype.UINT8
    if dtype is None and a.base in bindings.values:
        dtype, lanes = element_type(bindings.values[a.base], {})
    if a.base == "void" and a.pointers == 1 and a.name:
        casts = cast_types(kernel.body, a.name, bindings.values)
        dtype, lanes = casts[0] if len(casts) == 1 else (None, 1)
        guess = casts[0][0] if casts else None
    if a.image_axes and a.access != "read_write":
        return _image(name, a, kernel, sizes.dimensions)
    cannot = _inexpressible(a, dtype)
    if structs is not None and dtype is None and not (a.is_pointer or a.is_reference or a.is_image):
        found = structs.written(a.name or f"argument_{position}", a.base, bindings.values)
        if found is not None:
            words = "; ".join((f"{TODO}: values, and the buffers below", *found.unknown))
            return ArgumentLine(found.fields, words, found.is_written, found.buffers)
    if cannot:
        rest = "role: input, shape: [1]" if a.is_pointer else "role: scalar, value: 0"
        return ArgumentLine(f"name: {name}, dtype: {TODO}, {rest}", f"{TODO}: `{a.type_text}` {cannot}")
    if a.is_pointer and a.address_space == "local":
        return _local(name, a, dtype, lanes, sizes)
    if a.is_pointer:
        return _buffer(name, a, dtype, lanes, kernel, sizes, guess)
    assert dtype is not None
    if lanes > 1:
        values = ", ".join(["1"] * lanes)
        fields = f"name: {name}, dtype: {dtype.value}, role: scalar, values: [{values}]"
        return ArgumentLine(fields, f"{TODO}: `{a.type_text}`; the value of each lane")
    fields = f"name: {name}, dtype: {dtype.value}, role: scalar, value: "
    if a.name in sizes.dimensions:
        return ArgumentLine(fields + yaml_word(sizes.dimensions[a.name][0]))
    if a.name in sizes.space.free:
        return ArgumentLine(fields + scalar_value(a), "any value: it decides no branch and no index")
    said = f"`{a.type_text}`; " if a.dtype is None else ""
    return ArgumentLine(fields + scalar_value(a), f"{TODO}: {said}its value")


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


def _local(name: str, a: KernelArgument, dtype: Dtype | None, lanes: int, sizes: Sizes) -> ArgumentLine:
    unit = "elements" if dtype is not None else f"bytes, of `{a.type_text}`,"
    words = f"{TODO}: {unit} that a work-group needs; here as many as it has work-items"
    threads = " * ".join(n for n in sizes.space.block if n != "1") or "1"
    reason = sizes.said(a.name) if dtype is not None else ""
    if reason:
        threads, words = " * ".join(_factor(e) for e in sizes.of(a.name)), f"shape {reason}"
    shape = f'"{lanes} * {_factor(threads) if reason else threads}"' if lanes > 1 else yaml_extent(threads)
    fields = f"name: {name}, dtype: {(dtype or Dtype.UINT8).value}, role: local, shape: [{shape}]"
    return ArgumentLine(fields, words)


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
    shape = ", ".join((*map(yaml_word, named), "4"))
    fields = f"name: {name}, dtype: {dtype.value}, role: {role.value}, shape: [{shape}], "
    words = "[depth, height, width, channels]" if a.image_axes == 3 else "[height, width, channels]"
    return ArgumentLine(
        f"{fields}image: {{channels: rgba}}",
        f"{TODO}: {words}; channels, and the type of one",
        role is Role.OUTPUT,
    )


def _buffer(
    name: str,
    a: KernelArgument,
    dtype: Dtype | None,
    lanes: int,
    kernel: KernelDefinition,
    sizes: Sizes,
    guess: Dtype | None,
) -> ArgumentLine:
    """The line of a buffer.

    Args:
        guess: element type if it is not known; None: there is none.
    """
    extents = sizes.of(a.name)
    role, doubt = buffer_role(a, kernel, sizes.space)
    notes, doubts = _said_of_type(a, dtype, lanes)
    reason = sizes.said(a.name)
    notes += [f"shape {reason}"] if reason else []
    doubts = ([] if reason else ["shape"]) + doubts + ([doubt] if doubt else [])
    draw = _ZEROS if dtype is None else ""
    if dtype is not None and dtype.is_float and a.name and is_under_root(kernel.body, a.name):
        draw = _ABOVE_ZERO
    if role is not Role.OUTPUT and _may_hold_indices(dtype) and _holds_indices(a.name, sizes.space):
        doubts.append("which numbers it may hold (draw)")
        draw = draw or _ZEROS
    words = [yaml_extent(e) for e in extents[:-1]]
    words.append(f'"{lanes} * {_factor(extents[-1])}"' if lanes > 1 else yaml_extent(extents[-1]))
    known = dtype or guess
    kind = known.value if known else TODO
    draw = "" if kind == TODO else draw
    fields = f"name: {name}, dtype: {kind}, role: {role.value}, shape: [{', '.join(words)}]"
    if draw and role is not Role.OUTPUT:
        fields += f", {draw}"
    said = "; ".join([*doubts, *notes])
    return ArgumentLine(fields, f"{TODO}: {said}" if doubts else said, role is not Role.INPUT)


def _holds_indices(name: str, space: IndexSpace) -> bool:
    """True if a buffer's elements decide what memory is used; by its name where that is not understood."""
    understood = name in space.sure and space.shapes.keys() <= space.sure
    return name in space.indirect or (not understood and _INDICES.search(name) is not None)


def _may_hold_indices(dtype: Dtype | None) -> bool:
    return dtype is not None and not dtype.is_float and dtype is not Dtype.BOOL


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


def _said_of_type(a: KernelArgument, dtype: Dtype | None, lanes: int) -> tuple[list[str], list[str]]:
    """The type as the kernel has it, as often as the form's type does not show it: notes, and doubts."""
    if dtype is None:
        return [], [f"{'the type of its elements' if a.base == 'void' else 'bytes'} of `{a.type_text}`"]
    if lanes > 1 or a.dtype is None:
        return [f"`{a.type_text}`"], []
    return [], []
