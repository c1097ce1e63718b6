"""Numbers of examples as expressions over the dimensions of a workload."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from math import prod

from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.extensions.scaffold.indices.index_space import IndexSpace
from warpsmith.extensions.scaffold.lines.arguments import Sizes
from warpsmith.source.declarations.argument_lists import KernelArgument


class UnclearShape(InvalidInput):
    """The shape of an example is no expression over dimensions, or may be several.

    Args:
        name: argument.
        extents: the example's.
        words: the extent that is unclear and why, a shape that may be meant, and another way out.
    """

    def __init__(self, name: str, extents: Sequence[int], words: tuple[str, str, str]) -> None:
        self.name, self.extents, self.words = name, tuple(extents), words
        what, shape, more = words
        super().__init__(
            f"arguments.{name}", f"{what}; write {shape} with the expressions that you mean{more}"
        )


def unclear_shapes(unclear: Sequence[UnclearShape]) -> InvalidInput:
    """The error of these arguments together."""
    if len(unclear) == 1:
        return unclear[0]
    what, _, more = unclear[0].words
    shapes = ", ".join(f'"{one.name}": {one.words[1]}' for one in unclear)
    words = f"{unclear[0].name}'s {what}; write {shapes} with the expressions that you mean{more}"
    return InvalidInput(", ".join(one.field for one in unclear), words)


_Sets = Callable[[Iterable[str], int], Iterable[tuple[str, ...]]]
_PRODUCTS: tuple[tuple[_Sets, int], ...] = (
    (combinations, 1),
    (combinations, 2),
    (combinations_with_replacement, 2),
    (combinations, 3),
)
"""Kinds of products, the likeliest first: one dimension, two different ones, a square, three different.

A square counts only if there is no other dimension."""


def products(number: int, dimensions: Mapping[str, int]) -> list[str]:
    """The products of dimensions that have this value, of the most likely kind that has any; none for 1 if no
    dimension is 1."""
    for choose, count in _PRODUCTS:
        if choose is combinations_with_replacement and len(dimensions) > 1:
            # Among several dimensions a square is too often a coincidence: 64 is n // 32 as well as z * z.
            continue
        found = [
            " * ".join(names)
            for names in choose(dimensions, count)
            if prod(dimensions[name] for name in names) == number
        ]
        if found:
            return found
    return []


def shape_of(name: str, extents: Iterable[int], dimensions: Mapping[str, int], lanes: int = 1) -> list[str]:
    """The extents of an example as expressions.

    An extent is the one dimension with its value, or else the one product of dimensions, or else 1. Several
    of them that have the value are never chosen among.

    Args:
        name: argument, for messages.
        dimensions: those of the workload that the example belongs to.
        lanes: numbers in an element as the kernel has it (4 for `float4*`); an extent may be so many times a
            dimension, and the last one the lanes themselves.

    Raises:
        UnclearShape: an extent is no product of dimensions, or is several.
    """
    whole = list(extents)
    return [
        _extent(name, place, whole, dimensions, lanes if place == len(whole) - 1 else 1)
        for place in range(len(whole))
    ]


def _extent(name: str, place: int, extents: list[int], dimensions: Mapping[str, int], lanes: int) -> str:
    number = extents[place]
    found = products(number, dimensions)
    if not found and lanes > 1:
        if number == lanes:
            return str(lanes)
        if number % lanes == 0:
            found = [f"{lanes} * {text}" for text in products(number // lanes, dimensions)]
    if len(found) == 1:
        return found[0]
    if number == 1 and not found:
        return "1"
    sizes = ", ".join(f"{key}={value}" for key, value in dimensions.items())
    what = f"extent {number} (axis {place} of {tuple(extents)}) is "
    what += f"{' and '.join(found)} alike" if found else f"no dimension of the first workload ({sizes})"
    more = ", or an example and a first workload of which no two sizes are equal" if found else ""
    likely = ", ".join(map(repr, _likely(extents, dimensions)))
    raise UnclearShape(name, extents, (what, f'{{"example": ..., "shape": [{likely}]}}', more))


def _likely(extents: Iterable[int], dimensions: Mapping[str, int]) -> Iterator[str]:
    used: set[str] = set()
    for number in extents:
        found = products(number, dimensions) or [str(number)]
        used.add(text := next((text for text in found if text not in used), found[0]))
        yield text


def scalar_value(name: str, number: int, dimensions: Mapping[str, int]) -> str:
    """A whole number that a kernel takes, as a dimension or product of two where exactly one has its value.

    Other numbers, and 1 and below, are constants.

    Raises:
        InvalidInput: several dimensions have this value.
    """
    found = products(number, dimensions) if number > 1 else []
    if len(found) > 1:
        words = f"{number} is {' and '.join(found)} alike; write the one that you mean as text"
        raise InvalidInput(f"arguments.{name}", f"{words}, such as {found[0]!r}, or {str(number)!r}")
    return found[0] if found else str(number)


def source_shape(
    a: KernelArgument,
    extents: Sequence[int],
    space: IndexSpace,
    values: Mapping[str, str],
    dimensions: Mapping[str, int],
) -> list[str] | None:
    """The shape that a kernel's indices show for a buffer; None if they show none with an example's extents.

    Args:
        values: values of the scalar arguments, as expressions over dimensions.
    """
    if a.name not in space.sure:
        return None
    held = {name: (_factor(text), 0) for name, text in values.items()}
    *outer, last = Sizes(held, space).named(space.shapes[a.name]) or ["0"]
    inner = [last] if a.lanes == 1 else [f"{a.lanes} * {_factor(last)}"]
    layouts = [[*outer, *inner], [*outer, last, str(a.lanes)], [" * ".join(map(_factor, [*outer, *inner]))]]
    for shape in layouts:
        try:
            if [Expression(text).integer(dimensions) for text in shape] == list(extents):
                return shape
        except ExpressionError:
            continue
    return None


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
