"""Likely template arguments, sizes and values for an undescribed kernel."""

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.extensions.scaffold.reading.struct_declarations import StructIndex
from warpsmith.source.declarations.argument_lists import KernelArgument, TemplateParameter
from warpsmith.source.kernels.kernel_definitions import KernelDefinition
from warpsmith.source.tree.syntax_tree import split_arguments

_INDEX_TYPE = re.compile(r"id(?:x|type)|index|int|offset|^id_?t?$", re.I)
_WIDE_TYPE = re.compile(r"float|acc|scale|compute|bias", re.I)
_QUANTISED = re.compile(r"(?<!de)(?<!de_)quant", re.I)
_RESULT_TYPE = re.compile(r"^O$|out|dst|result", re.I)
_STRUCT_TYPE = re.compile(
    r"param|args|traits|config|tensor|func|desc|layout|iter|tma|problem|shape|variant|gemm|kernel|state"
    r"|tiled|mainloop|epilogue|scheduler|visitor|pack|op$|map$",
    re.I,
)
_SIZES = (
    (re.compile(r"per_?thread|items", re.I), 4),
    (re.compile(r"warp", re.I), 4),
    (re.compile(r"thread|block|cta|tpb|bdx", re.I), 256),
    (re.compile(r"head_?dim|dim", re.I), 128),
    (re.compile(r"tile", re.I), 32),
)
_EXTENTS = (
    (re.compile(r"head_?(?:dim|size)|^d$", re.I), 128),
    (re.compile(r"heads", re.I), 32),
    (re.compile(r"batch", re.I), 16),
    (re.compile(r"top_?k|experts|groups|ranks|size_per|stages", re.I), 8),
)
_NO_EXTENT = re.compile(
    r"stride|offset|start|begin|seed|flag|^is_|^is[A-Z]|^use_?|^has_?|enable|mode|rank$|^rank|index|idx|_id$"
    r"|^id$|layout|pdl|shift|mask|addr|ptr|handle|store_|type$|mod\d",
    re.I,
)
_INTEGER_TYPES = re.compile(r"\b(?:int|unsigned|long|short|char|size_t|u?int(?:8|16|32|64)_t|uint|auto)\b")
DEFAULT_EXTENT = 1024
ELEMENTS = ("half", "float", "__nv_bfloat16")
"""Guesses for the type of a buffer's elements, the most likely first."""


@dataclass(frozen=True)
class Bindings:
    """Template arguments of an entry by parameter name, and which of them are guesses."""

    values: Mapping[str, str]
    written: tuple[str, ...]
    """The arguments as the entry lists them; parameters with defaults may be left out at the end."""
    guessed: tuple[str, ...]
    """Names of parameters whose argument is a guess."""
    unknown: tuple[str, ...]
    """Names of parameters without a guess; they appear in the entry by their own name."""


@dataclass(frozen=True)
class BindingHints:
    """Facts of a source, besides the kernel, that decide guesses of template arguments."""

    structs: StructIndex | None = None
    """Structs of the source; their members show what a parameter that they are given stands for."""
    enumerations: Mapping[str, str] = field(default_factory=dict)
    """Qualified names of enumerations by their own names; an entry lies in no namespace."""
    has_using_directives: bool = False
    """True if names of other namespaces count as names of the kernel's."""
    element: str = ELEMENTS[0]
    """Guess for the type of a buffer's elements."""
    quantised: str = "int8_t"
    """Guess for the type of elements that were quantised."""


def bind(kernel: KernelDefinition, entry: str | None, around: BindingHints | None = None) -> Bindings:
    """Arguments of a kernel's template: those listed by `entry`, guesses otherwise."""
    around = around or BindingHints()
    uses = (*kernel.arguments, *(around.structs.members_of(kernel.arguments) if around.structs else ()))
    given: list[str] = []
    if entry is not None and "<" in entry:
        given = split_arguments(entry[entry.index("<") + 1 : entry.rindex(">")])
    values: dict[str, str] = {}
    written: list[str] = []
    guessed: list[str] = []
    unknown: list[str] = []
    for n, parameter in enumerate(kernel.template):
        name = parameter.name or f"parameter_{n}"
        if n < len(given):
            values[name] = given[n]
            written.append(given[n])
        elif given or parameter.default or parameter.is_pack:
            values[name] = parameter.default
        else:
            guess = _template_argument(parameter, uses, kernel, around)
            values[name] = guess or name
            written.append(values[name])
            (guessed if guess else unknown).append(name)
    return Bindings(values, tuple(written), tuple(guessed), tuple(unknown))


def _template_argument(
    parameter: TemplateParameter,
    arguments: Sequence[KernelArgument],
    kernel: KernelDefinition,
    around: BindingHints,
) -> str:
    """A likely argument; empty if there is none."""
    if parameter.kind in ("template", "value"):
        return _value_argument(parameter, kernel, around) if parameter.kind == "value" else ""
    uses = [a for a in arguments if a.base == parameter.name]
    pointed = any(a.is_pointer for a in uses)
    if not uses or (_STRUCT_TYPE.search(parameter.name) and not pointed):
        return ""
    if _INDEX_TYPE.search(parameter.name):
        return "int"
    of_quantising = _QUANTISED.search(kernel.name) and _RESULT_TYPE.search(parameter.name)
    if not pointed:
        return "float"
    if of_quantising or _QUANTISED.search(parameter.name):
        return around.quantised
    return "float" if _WIDE_TYPE.search(parameter.name) else around.element


def _value_argument(parameter: TemplateParameter, kernel: KernelDefinition, around: BindingHints) -> str:
    kind = parameter.type_text
    if kind.split()[-1:] == ["bool"]:
        return "false"
    if _INTEGER_TYPES.search(kind):
        return str(next((size for names, size in _SIZES if names.search(parameter.name)), 8))
    if re.fullmatch(r"[\w:]+", kind) is None:
        return ""
    whole = around.enumerations.get(kind, kind)
    if whole not in around.enumerations.values() and around.has_using_directives:
        whole = "::".join((*kernel.namespaces, whole))
    return f"static_cast<{whole}>(0)"


def extent(argument: KernelArgument) -> int | None:
    """An initial size, if an integer argument seems to be an extent of the data; else None."""
    dtype = argument.dtype
    small = dtype is not None and dtype.size_bytes < 4
    if small or not argument.name or _NO_EXTENT.search(argument.name):
        return None
    return next((size for names, size in _EXTENTS if names.search(argument.name)), DEFAULT_EXTENT)


def scalar_value(argument: KernelArgument) -> str:
    """An initial value for a number that is no extent."""
    if argument.dtype is not None and argument.dtype.is_float:
        return "1e-5" if re.search(r"eps", argument.name, re.I) else "1.0"
    return "1" if re.search(r"stride", argument.name, re.I) else "0"


def dimension_name(name: str) -> str:
    """`name`, changed if it is a reserved word of expressions."""
    return f"{name}_" if keyword.iskeyword(name) else name
