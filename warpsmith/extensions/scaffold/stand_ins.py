"""Functions that stand for those by which a host program instantiates a kernel's template."""

import re
from collections.abc import Iterator, Mapping, Sequence

from warpsmith.extensions.scaffold.reading.struct_declarations import spelt
from warpsmith.source.declarations.argument_lists import TemplateParameter
from warpsmith.source.tree.syntax_tree import split_arguments

_FUNCTION = re.compile(r"(.+?)\s*\(\s*[*&]\s*\)\s*\((.*)\)", re.S)


def stand_ins(
    template: Sequence[TemplateParameter], unknown: Sequence[str], values: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Name and definition of a device function for each unknown template parameter that is a function.

    It returns its first argument if that has the right type, and zero otherwise.

    Args:
        unknown: names of parameters without an argument; the functions have these names.
        values: arguments of the other parameters.
    """
    for parameter in template:
        found = _FUNCTION.fullmatch(spelt(parameter.type_text, values))
        if parameter.kind == "value" and parameter.name in unknown and found is not None:
            kinds = [a for a in split_arguments(found.group(2)) if a.strip() not in ("", "void")]
            listed = ", ".join(f"{kind.strip()} v{n}" for n, kind in enumerate(kinds))
            result = found.group(1).strip()
            gives = "v0" if kinds and _value(kinds[0]) == _value(result) else "{}"
            body = "" if result == "void" else f" return {gives}; "
            yield parameter.name, f"__device__ inline {result} {parameter.name}({listed}) {{{body}}}"


def _value(kind: str) -> str:
    """A type without `const` and references."""
    return re.sub(r"\bconst\b|&|\s", "", kind)
