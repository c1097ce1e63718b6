"""Places of host code: what is declared and set before them."""

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from warpsmith.extensions.scaffold.host.code import HostCode
from warpsmith.extensions.scaffold.host.events import FILLED, Event
from warpsmith.extensions.scaffold.host.expressions import Node
from warpsmith.source.tree.work_limit import spend


@dataclass(frozen=True)
class HostPlace:
    """A place in host code, and what a function's or macro's parameters are bound to there."""

    code: HostCode
    at: int
    bound: Mapping[str, Node | None] = field(default_factory=dict)
    depth: int = 0


def seen(name: str, place: HostPlace) -> tuple[Event | None, list[Event]]:
    """The declaration of a name that is visible at a place, and what happens to it later in its function."""
    function = place.code.function(place.at)
    events = place.code.events.get(name, [])
    if function is None or not events:
        return None, []
    begin = bisect_left(events, function.start, key=lambda e: e.at)
    end = bisect_left(events, function.end + 1, key=lambda e: e.at)
    spend(max(1, end - begin))
    declared, at = None, begin
    for n in range(begin, end):
        e = events[n]
        if e.at >= place.at:
            break
        if e.is_declaration and _scope_end(e, place.code) >= place.at:
            declared, at = e, n + 1
    return declared, [e for e in events[at:end] if not e.is_declaration]


def always_before(event: Event | None, place: HostPlace) -> bool:
    """True if no branch leads to the place past the event."""
    if event is None:
        return False
    ends = [r.end for r in place.code.around(event.at) if r.kind in ("loop", "branch")]
    return all(end >= place.at for end in ends)


def _scope_end(event: Event, code: HostCode) -> int:
    ends = [
        r.end
        for r in code.around(event.at)
        if r.kind in ("block", "function") or (r.kind == "loop" and event.at < r.body)
    ]
    function = code.function(event.at)
    outermost = -1 if function is None else function.end
    return ends[-1] if ends else outermost


def touches(changed: str, member: str) -> bool:
    """True if setting one part of a variable may set another one."""
    if changed == FILLED:
        return member.startswith("[")
    return "?" in changed or changed.startswith(member) or member.startswith(changed)


def path_of(node: Node) -> tuple[str, str] | None:
    """A variable's name, and its part: `.x`, `[0]`, `.size(0)`."""
    words: list[str] = []
    while node.kind != "name":
        spend(1)
        if node.kind == "member":
            words.append(f".{node.text}")
        elif node.kind == "index" and node.parts[1].kind == "number":
            words.append(f"[{node.parts[1].text}]")
        elif node.kind == "call" and all(p.kind == "number" for p in node.parts[1:]):
            if node.parts[0].kind != "member":
                return None
            words.append(f"({','.join(p.text for p in node.parts[1:])})")
        else:
            return None
        node = node.parts[0]
    return node.text, "".join(reversed(words))


def number(text: str) -> Node | None:
    """The value of a literal; None for one that is no whole number."""
    plain = text.replace("'", "")
    found = re.fullmatch(r"(0[xX][\da-fA-F]+|\d+)[uUlLzZ]*", plain)
    if found is not None:
        digits = found.group(1)
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
        if octal or len(digits) > 20:
            return None
        return Node("num", str(int(digits, 0)))
    real = re.fullmatch(r"(\d+)\.0*[fF]?|(\d+)[eE](\d)", plain)
    if real is None:
        return None
    number = int(real.group(1)) if real.group(1) else int(real.group(2)) * 10 ** int(real.group(3))
    return Node("float", "", (Node("num", str(number)),))


def as_float(a: Node | None) -> Node | None:
    """A value that the compiler takes for a floating-point number."""
    return a if a is None or a.kind in ("float", "quotient") else Node("float", "", (a,))


def symbol(text: str, is_float: bool) -> Node:
    """A variable of unknown value."""
    made = Node("sym", text)
    return Node("float", "", (made,)) if is_float else made
