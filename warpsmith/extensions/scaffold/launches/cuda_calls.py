"""Calls that launch a kernel in host code of CUDA and HIP."""

from collections.abc import Iterator, Mapping, Sequence

from warpsmith.extensions.scaffold.host.code import HostCode
from warpsmith.extensions.scaffold.host.expressions import split_list, template_end
from warpsmith.extensions.scaffold.host.values import HostValues
from warpsmith.extensions.scaffold.launches.call import LaunchCall
from warpsmith.source.lexing.brackets import joined
from warpsmith.source.lexing.tokens import Token
from warpsmith.source.tree.work_limit import spend

_LONGEST = 2000
_BY_POINTER = frozenset(
    f"{prefix}Launch{kind}Kernel" for prefix in ("cuda", "hip") for kind in ("", "Cooperative")
)


def cuda_launches(code: HostCode, name: str, _: HostValues) -> Iterator[LaunchCall]:
    """The launches of a kernel in a text, in order."""
    items = code.items
    for n, token in enumerate(items):
        if token.text == "<<" and n + 1 < len(items) and items[n + 1].text == "<":
            call = _chevrons(items, n, name)
        elif token.text == "hipLaunchKernelGGL":
            call = _listed(items, n, name, code.closers)
        elif token.text in _BY_POINTER:
            call = _by_pointer(code, n, name)
        else:
            continue
        if call is not None:
            yield call


def _chevrons(items: Sequence[Token], at: int, name: str) -> LaunchCall | None:
    """`name<T><<<grid, block, shared, stream>>>(arguments)`."""
    before = at - 1
    template: tuple[str, ...] = ()
    if items[before].text == ">":
        before = _template_start(items, before)
        template = tuple(joined(p) for p in split_list(items[before + 1 : at - 1]))
        before -= 1
    if before < 0 or items[before].text != name:
        return None
    end = _configuration_end(items, at + 2)
    if end is None or end + 3 >= len(items) or items[end + 3].text != "(":
        return None
    close = _closing(items, end + 3)
    parts = split_list(items[at + 2 : end])
    if close is None or len(parts) < 2:
        return None
    arguments = split_list(items[end + 4 : close])
    shared = parts[2] if len(parts) > 2 else ()
    return LaunchCall(at, parts[0], parts[1], shared, dict(enumerate(arguments)), template)


def _template_start(items: Sequence[Token], at: int) -> int:
    depth = 0
    for n in range(at, max(at - 300, 0), -1):
        spend(1)
        depth += (items[n].text == ">") - (items[n].text == "<")
        if depth == 0:
            return n
    return 0


def _configuration_end(items: Sequence[Token], at: int) -> int | None:
    depth = 0
    for n in range(at, min(at + _LONGEST, len(items) - 3)):
        spend(1)
        text = items[n].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if text == ";" and depth == 0:
            return None
        if depth == 0 and text == ">" == items[n + 1].text == items[n + 2].text and items[n + 3].text != ">":
            return n
    return None


def _closing(items: Sequence[Token], at: int) -> int | None:
    depth = 0
    for n in range(at, min(at + _LONGEST, len(items))):
        spend(1)
        depth += (items[n].text == "(") - (items[n].text == ")")
        if depth == 0:
            return n
    return None


def _listed(items: Sequence[Token], at: int, name: str, closers: Mapping[int, int]) -> LaunchCall | None:
    """`hipLaunchKernelGGL(name, grid, block, shared, stream, arguments...)`."""
    parts = split_list(items[at + 2 : closers.get(at + 1, at)])
    template = None if len(parts) < 5 else _kernel_of(parts[0], name)
    if template is None:
        return None
    return LaunchCall(at, parts[1], parts[2], parts[3], dict(enumerate(parts[5:])), template)


def _kernel_of(part: Sequence[Token], name: str) -> tuple[str, ...] | None:
    """Template arguments of an expression that names the kernel; None if it names something else."""
    where = next((n for n, t in enumerate(part) if t.text == name), None)
    if where is None:
        return None
    end = template_end(part, where + 1) if where + 1 < len(part) and part[where + 1].text == "<" else where
    return tuple(joined(p) for p in split_list(part[where + 2 : end - 1]))


def _by_pointer(code: HostCode, at: int, name: str) -> LaunchCall | None:
    """`cudaLaunchKernel((void*) name, grid, block, arguments, shared, stream)`."""
    parts = split_list(code.items[at + 2 : code.closers.get(at + 1, at)])
    template = None if len(parts) < 4 else _kernel_of(parts[0], name)
    if template is None:
        return None
    shared = parts[4] if len(parts) > 4 else ()
    arguments = _pointed(code, at, parts[3][-1].text)
    return LaunchCall(at, parts[1], parts[2], shared, arguments, template)


def _pointed(code: HostCode, at: int, name: str) -> Mapping[int, Sequence[Token]] | None:
    """Variables that the entries of `void* name[] = {&a, &b}` point to."""
    function = code.function(at)
    begin = 0 if function is None else function.start
    near = [e for e in code.events.get(name, ()) if begin <= e.at < at]
    declared = max((n for n, e in enumerate(near) if e.is_declaration), default=None)
    if declared is None:
        return None
    found: dict[int, Sequence[Token]] = {}
    for n, e in enumerate(near[declared + 1 :]):
        value = e.value or ()
        sign = next((i for i, t in enumerate(value) if t.text == "&"), None)
        if e.member != f"[{n}]" or not value:
            return None
        # An entry without `&` is a pointer to what it passes.
        found[n] = () if sign is None else value[sign + 1 :]
    return found or None
