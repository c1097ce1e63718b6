"""The lines of a scaffold for constant memory that host code fills."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from warpsmith.domain.arguments.argument import Role
from warpsmith.extensions.scaffold.argument_line import ArgumentLine
from warpsmith.extensions.scaffold.yaml_text import TODO
from warpsmith.source.declarations.device_variables import DeviceVariable, device_variables
from warpsmith.source.declarations.named_constants import integer_value
from warpsmith.source.declarations.type_words import element_type

_FUNCTION = re.compile(r"\b(\w+)\s*\([^(){};]*\)\s*\{")
_BRACE = re.compile(r"[{}]")


def function_bodies(text: str) -> dict[str, str]:
    """Texts of the functions of a blanked source, by name; with `{`, up to what closes it."""
    braces = [(m.start(), m.group()) for m in _BRACE.finditer(text)]
    ends: dict[int, int] = {}
    opened: list[int] = []
    for at, brace in braces:
        if brace == "{":
            opened.append(at)
        elif opened:
            ends[opened.pop()] = at
    found: dict[str, str] = {}
    for match in _FUNCTION.finditer(text):
        end = ends.get(match.end() - 1)
        if end is not None:
            found[match.group(1)] = found.get(match.group(1), "") + text[match.end() : end]
    return found


def symbol_lines(
    texts: Sequence[str], used: Collection[str], constants: Mapping[str, int]
) -> Iterator[ArgumentLine]:
    """The line of each constant without initialiser; one that no symbol can be has no fields.

    Args:
        texts: the source and its headers.
        used: words of the kernel, and of what it calls.
    """
    variables = {v.name: v for text in texts if "__constant__" in text for v in device_variables(text)}
    for v in variables.values():
        if v.is_constant and not v.has_value and v.name in used:
            yield _line(v, constants)


def _line(v: DeviceVariable, constants: Mapping[str, int]) -> ArgumentLine:
    dtype, lanes = element_type(v.type_text, {})
    if dtype is None:
        words = f"host code fills `{v.type_text} {v.name}`; no symbol has that type: make it an argument"
        return ArgumentLine({}, f"{TODO}: {words}")
    known = [integer_value(extent, constants) for extent in v.extents]
    shape = [str(extent or 1) for extent in known] + ([str(lanes)] if lanes > 1 else [])
    doubts = {} if all(known) else {"shape": f"shape: `{', '.join(v.extents)}`"}
    fields = {"name": v.name, "dtype": dtype.value, "role": Role.SYMBOL.value, "shape": shape or ["1"]}
    return ArgumentLine(fields, doubts=doubts | {"draw": "host code fills it: a draw, or a value"})
