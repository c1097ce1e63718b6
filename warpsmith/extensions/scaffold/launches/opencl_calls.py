"""Calls that launch a kernel in host code of OpenCL, with the C API and its C++ wrapper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith.extensions.scaffold.host.arithmetic import number_of
from warpsmith.extensions.scaffold.host.code import HostCode
from warpsmith.extensions.scaffold.host.expressions import split_list
from warpsmith.extensions.scaffold.host.places import HostPlace
from warpsmith.extensions.scaffold.host.values import HostValues
from warpsmith.extensions.scaffold.launches.call import LaunchCall
from warpsmith.source.lexing.brackets import joined
from warpsmith.source.lexing.tokens import Token
from warpsmith.source.tree.work_limit import spend

_NULL = ("NULL", "nullptr", "0", "NullRange")


@dataclass(frozen=True)
class _Setting:
    """A call that sets a kernel's argument."""

    at: int
    kernel: str
    position: tuple[Token, ...]
    value: tuple[Token, ...]


def opencl_launches(code: HostCode, name: str, values: HostValues) -> Iterator[LaunchCall]:
    """The launches of a kernel in a text, in order.

    Arguments have the values that they have where they are set, in the function that launches.
    """
    kernels = [made for made in _kernels(code) if made[1]]
    settings = list(_settings(code))
    for n, token in enumerate(code.items):
        if token.text not in ("clEnqueueNDRangeKernel", "enqueueNDRangeKernel"):
            continue
        parts = _listed(code, n + 1)
        is_c = token.text.startswith("cl")
        if len(parts) < (6 if is_c else 4):
            continue
        variable = joined(parts[1 if is_c else 0])
        if not _is_kernel(code, kernels, variable, name, n):
            continue
        arguments, places = _arguments(code, settings, variable, n, values)
        if not is_c:
            local = () if parts[3][-1].text in _NULL else parts[3]
            yield LaunchCall(n, parts[2], local, (), arguments, (), True, 3, False, places)
            continue
        axes = _number(values, parts[2], HostPlace(code, n))
        if axes in (1, 2, 3):
            grid, groups = _extents(parts[4], axes), _extents(parts[5], axes)
            yield LaunchCall(n, grid, groups, (), arguments, (), True, axes, False, places)


def _listed(code: HostCode, at: int) -> list[list[Token]]:
    close = code.closers.get(at)
    return (
        []
        if close is None or code.items[at].text not in ("(", "{")
        else split_list(code.items[at + 1 : close])
    )


def _kernels(code: HostCode) -> Iterator[tuple[int, str, str]]:
    """Place, variable and name of each kernel that is made."""
    items = code.items
    for n, token in enumerate(items):
        if token.text == "clCreateKernel" or (token.text == "Kernel" and n and items[n - 1].text == "::"):
            named = n + 1 < len(items) and items[n + 1].kind == "name"
            parts = _listed(code, n + 2 if named else n + 1)
            if len(parts) < 2 or parts[1][0].kind != "string" or len(parts[1]) > 1:
                continue
            string = parts[1][0]
            text = code.text[string.start + 1 : string.start + len(string.text) - 1]
            yield n, items[n + 1].text if named else _assigned(items, n), text


def _assigned(items: Sequence[Token], at: int) -> str:
    """The variable that is set to what stands at a token."""
    n = at - 1
    while n > 0 and items[n].text in ("::", "cl"):
        n -= 1
    end = n
    if items[n].text != "=":
        return ""
    while n > 0 and (items[n - 1].kind in ("name", "number") or items[n - 1].text in (".", "->", "[", "]")):
        spend(1)
        if items[n - 1].kind == "name" and n < end and items[n].kind == "name":
            break
        n -= 1
    return joined(items[n:end])


def _is_kernel(
    code: HostCode, kernels: Sequence[tuple[int, str, str]], variable: str, name: str, at: int
) -> bool:
    """True if a variable certainly holds the kernel at a place."""
    function = code.function(at)
    made = [(n, text) for n, v, text in kernels if v == variable]
    near = [] if function is None else [m for m in made if function.start <= m[0] <= function.end]
    if not near:
        return {text for _, text in made} == {name}
    before = [text for n, text in near if n < at]
    if before[-1:] != [name]:
        return False
    is_last = max(n for n, _ in near) <= at
    in_loop = any(r.kind == "loop" for r in code.around(at))
    return is_last or {text for _, text in near} == {name} or not in_loop


def _settings(code: HostCode) -> Iterator[_Setting]:
    for n, token in enumerate(code.items):
        if token.text == "clSetKernelArg":
            parts = _listed(code, n + 1)
            if len(parts) == 4:
                yield _Setting(n, joined(parts[0]), tuple(parts[1]), _pointed_to(parts[3]))
        elif token.text == "setArg" and n > 1 and code.items[n - 1].text in (".", "->"):
            parts = _listed(code, n + 1)
            if len(parts) == 2:
                yield _Setting(n, _object(code, n - 1), tuple(parts[0]), tuple(parts[1]))


def _pointed_to(part: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens of `x` in a pointer `&x` or `&(x)`, cast or not; none if it is written in another way."""
    sign = next((i for i, t in enumerate(part) if t.text == "&"), len(part))
    value = tuple(part[sign + 1 :])
    while len(value) > 2 and value[0].text == "(" and value[-1].text == ")":
        value = value[1:-1]
    return value


def _object(code: HostCode, end: int) -> str:
    """The object whose member is named behind `end`."""
    begin = end
    while begin > 0 and (
        code.items[begin - 1].kind == "name" or code.items[begin - 1].text in (".", "->", "[", "]")
    ):
        begin -= 1
    return joined(code.items[begin:end])


def _arguments(
    code: HostCode, settings: Sequence[_Setting], variable: str, at: int, values: HostValues
) -> tuple[dict[int, Sequence[Token]], dict[int, int]]:
    """Values of arguments set before a launch in its function, and the tokens that set them, by position."""
    function = code.function(at)
    found: dict[int, Sequence[Token]] = {}
    places: dict[int, int] = {}
    if function is None:
        return found, places
    loops = [r for r in code.around(at) if r.kind == "loop"]
    for s in settings:
        if s.kernel != variable or not function.start <= s.at <= function.end:
            continue
        position = _position(code, s, values)
        if position is None:
            return {}, {}
        branches = [r for r in code.around(s.at) if r.kind in ("loop", "branch")]
        if s.at > at:
            certain = not any(r.start <= s.at <= r.end for r in loops)
            if certain:
                continue
        else:
            certain = all(r.end >= at for r in branches)
        found[position], places[position] = (s.value if certain else ()), s.at
    return found, places


def _position(code: HostCode, s: _Setting, values: HostValues) -> int | None:
    """The position that a call sets, counted by hand for `n++`."""
    texts = [t.text for t in s.position]
    if texts[1:] != ["+", "+"]:
        return _number(values, s.position, HostPlace(code, s.at))
    function = code.function(s.at)
    begin = 0 if function is None else function.start
    earlier = [e for e in code.events.get(texts[0], ()) if begin <= e.at < s.at]
    last = next((e for e in reversed(earlier) if e.value), None)
    if last is None or last.sign:
        return None
    first = _number(values, last.value or (), HostPlace(code, last.at))
    steps = [e for e in earlier if e.at > last.at]
    return None if first is None or _is_nested(code, last.at, s.at) else first + len(steps)


def _number(values: HostValues, items: Sequence[Token], place: HostPlace) -> int | None:
    found = values.of(items, place)
    return None if found is None else number_of(found)


def _is_nested(code: HostCode, begin: int, at: int) -> bool:
    """True if a loop or a branch that begins behind a place is around another one."""
    return any(r.kind in ("loop", "branch") and r.start > begin for r in code.around(at))


def _extents(part: Sequence[Token], axes: int) -> Sequence[Token]:
    """A list of the extents that an array, a pointer to a number, or a list in braces holds."""
    if part[-1].text in _NULL:
        return ()
    if part[0].text == "&" and axes == 1:
        return part[1:]
    brace = next((n for n, t in enumerate(part) if t.text == "{"), None)
    if brace is not None:
        return part[brace:]
    made: list[Token] = [Token("mark", "{", 0)]
    for axis in range(axes):
        made += [*part, Token("mark", "[", 0), Token("number", str(axis), 0), Token("mark", "]", 0)]
        made.append(Token("mark", "," if axis < axes - 1 else "}", 0))
    return made
