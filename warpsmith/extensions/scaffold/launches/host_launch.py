"""Launches of a kernel as host code has them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpsmith.domain.expressions import Expression
from warpsmith.errors import ExpressionError
from warpsmith.extensions.scaffold.guesses import dimension_name, extent
from warpsmith.extensions.scaffold.host.arithmetic import (
    PassedNames,
    divided,
    number_of,
    op,
    rendered,
    stripped,
)
from warpsmith.extensions.scaffold.host.code import HostCode, read_host_code
from warpsmith.extensions.scaffold.host.expressions import Node
from warpsmith.extensions.scaffold.host.places import HostPlace
from warpsmith.extensions.scaffold.host.values import HostValues
from warpsmith.extensions.scaffold.indices.index_space import BLOCK, GRID, IndexSpace
from warpsmith.extensions.scaffold.launches.call import LaunchCall
from warpsmith.extensions.scaffold.launches.cuda_calls import cuda_launches
from warpsmith.extensions.scaffold.launches.opencl_calls import opencl_launches
from warpsmith.extensions.scaffold.launches.overloads import Overloads
from warpsmith.source.declarations.argument_lists import KernelArgument
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition
from warpsmith.source.tree.work_limit import TooMuchWork, limited_work

STEPS = 3_000_000
"""Limit on the work for all texts: a few seconds."""
_MAX_LAUNCHES = 64


@dataclass(frozen=True)
class HostLaunch:
    """Launch of a kernel in host code. Expressions name its integer arguments; an empty field is unknown."""

    grid: tuple[str, ...] = ()
    """Blocks (OpenCL: work-groups) along x, y, z."""
    block: tuple[str, ...] = ()
    """Threads along x, y, z."""
    shared_bytes: str = ""
    """Dynamic shared memory; empty for none too."""
    template_arguments: tuple[str, ...] = ()
    """Template arguments as the launch writes them."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Values of the kernel's integer arguments that the host code fixes."""
    line: int = 0
    """Line of the launch in its text, from 1."""
    origin: str = ""
    """Name of the text."""


def host_launches(
    texts: Mapping[str, str], kernel: KernelDefinition, dialect: Dialect, constants: Mapping[str, int]
) -> tuple[HostLaunch, ...]:
    """The launches of a kernel whose grid or block is known, in the order of the texts.

    An extent is given only if it follows from numbers, constants and what is passed to the kernel. A large
    text may have more launches than are found: the work is limited.

    Args:
        texts: host and device code by name.
        constants: integers by name that the texts do not declare.
    """
    found: list[HostLaunch] = []
    try:
        with limited_work(STEPS):
            found.extend(_found(texts, kernel, dialect, constants))
    except (TooMuchWork, RecursionError):
        pass
    return tuple(found)


def launched(space: IndexSpace, launches: Iterable[HostLaunch], kernel: KernelDefinition) -> IndexSpace:
    """The index space with the first launch of which grid and block are known; as it was if there is none.

    An argument that a job gives no size (`blockSize`) is replaced by its number; without one, the launch is
    passed over.
    """
    sizes = _sizes(kernel)
    for launch in launches:
        if not (launch.grid and launch.block):
            continue
        fixed = {dimension_name(name): n for name, n in launch.sizes.items()}
        fixed = {name: n for name, n in fixed.items() if name not in sizes}
        extents = [_with_numbers(text, fixed) for text in (*launch.grid, *launch.block)]
        shared = _with_numbers(launch.shared_bytes, fixed)
        used = {n for text in (*extents, shared or "0") for n in Expression(text).names}
        if used <= sizes:
            words = f"as {launch.origin} line {launch.line} launches it"
            return replace(
                space,
                grid=tuple(extents[: len(launch.grid)]),
                block=tuple(extents[len(launch.grid) :]),
                shared_bytes=shared,
                sure=space.sure | {GRID, BLOCK},
                reasons={**space.reasons, GRID: words, BLOCK: ""},
            )
    return space


def _sizes(kernel: KernelDefinition) -> set[str]:
    """Dimensions that the kernel's integer arguments hold."""
    whole = (a for a in kernel.arguments if a.dtype is not None and not a.dtype.is_float)
    return {dimension_name(a.name) for a in whole if not a.is_pointer and extent(a) is not None}


def _with_numbers(text: str, numbers: Mapping[str, int]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: str(numbers.get(m.group(), m.group())), text)


def _found(
    texts: Mapping[str, str], kernel: KernelDefinition, dialect: Dialect, constants: Mapping[str, int]
) -> Iterator[HostLaunch]:
    codes = [read_host_code(name, text, kernel.name) for name, text in texts.items()]
    calls_in = opencl_launches if dialect is Dialect.OPENCL else cuda_launches
    values = HostValues(codes, constants)
    overloads = Overloads(texts, kernel, dialect)
    count = 0
    for code in codes:
        if not re.search(rf"\b{re.escape(kernel.name)}\b", code.text):
            continue
        for call in calls_in(code, kernel.name, values):
            launch = _launch(call, code, kernel, values) if overloads.means(call, code.name) else None
            count += 1
            if launch is not None and (launch.grid or launch.block):
                yield launch
            if count >= _MAX_LAUNCHES:
                return


def _launch(
    call: LaunchCall, code: HostCode, kernel: KernelDefinition, values: HostValues
) -> HostLaunch | None:
    place = HostPlace(code, call.at)
    given = _given(call, kernel, values, place)
    if given is None:
        return None
    names = _names(given)
    block_values = values.extents(call.block, place)[: call.axes]
    grid_values = values.extents(call.grid, place)[: call.axes]
    if call.counts_threads:
        grid_values = tuple(map(_groups, grid_values, block_values))
    return HostLaunch(
        _extents(grid_values, names),
        _extents(block_values, names),
        _checked(values.of(call.shared, place), names, least=1),
        call.template_arguments,
        {a.name: n for a, v in given for n in [None if v is None else number_of(v)] if n is not None},
        code.line(call.at),
        code.name,
    )


def _given(
    call: LaunchCall, kernel: KernelDefinition, values: HostValues, place: HostPlace
) -> list[tuple[KernelArgument, Node | None]] | None:
    """The integer arguments and the values that are passed; None for a launch of another kernel."""
    has_pack = any(a.type_text.endswith("...") for a in kernel.arguments)
    passed = call.arguments or {}
    if passed and call.is_complete and len(passed) != len(kernel.arguments) and not has_pack:
        return None
    found: list[tuple[KernelArgument, Node | None]] = []
    for n, argument in enumerate(kernel.arguments):
        if argument.type_text.endswith("..."):
            break
        if n in passed and _is_integer(argument):
            value = values.of(passed[n], replace(place, at=call.places.get(n, call.at)))
            found.append((argument, value if value is None or value.kind == "named" else _plain(value)))
    return found


def _groups(threads: Node | None, block: Node | None) -> Node | None:
    """Work-groups along an axis."""
    if threads is None or block is None:
        return None
    found = divided(threads, block)
    return op("ceil_div", *found.parts) if found is not None and found.text == "//" else found


def _plain(value: Node) -> Node | None:
    return value.parts[0] if value.kind == "float" else None if value.kind == "quotient" else value


def _is_integer(a: KernelArgument) -> bool:
    number = a.dtype is not None and not a.dtype.is_float and a.dtype.value != "bool"
    return number and a.lanes == 1 and not a.is_pointer and bool(a.name)


def _names(given: Sequence[tuple[KernelArgument, Node | None]]) -> PassedNames:
    variables: dict[str, str] = {}
    by_value: dict[Node, str] = {}
    for argument, value in given:
        if value is None:
            continue
        name = dimension_name(argument.name)
        if value.kind in ("sym", "named"):
            variables.setdefault(value.text, name)
        if value.kind != "num" and number_of(value) is None:
            by_value.setdefault(stripped(value), name)
    return PassedNames(variables, by_value)


def _extents(found: Sequence[Node | None], names: PassedNames) -> tuple[str, ...]:
    """Extents without trailing ones; none if one of them is unknown."""
    extents = list(found)
    while len(extents) > 1 and (last := extents[-1]) is not None and number_of(last) == 1:
        extents.pop()
    texts = [_checked(e, names, least=1) for e in extents]
    return tuple(texts) if all(texts) else ()


def _checked(value: Node | None, names: PassedNames, least: int) -> str:
    text = rendered(value, names)
    if text is None or (re.fullmatch(r"-?\d+", text) and int(text) < least):
        return ""
    try:
        Expression(text)
    except ExpressionError:
        return ""
    return text
