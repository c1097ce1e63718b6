"""Other spellings of places: sums and products, pointers, names, macros and casts of coordinates and indices.

Each function takes a kernel's text and returns an equal kernel, changed at one or more drawn places.
"""

import re
from collections.abc import Iterator
from random import Random

from tree_sitter import Node

from testbed.kernels.spelling_text import (
    COORDINATE,
    GROUPED,
    Edit,
    Site,
    Text,
    around,
    at_some,
    bare,
    before,
    between,
    edited,
    factor,
    operator,
    statement_of,
    within,
)

_WHOLE_TYPES = ("int", "unsigned", "size_t")


def _index(subscript: Node) -> Node:
    found = between(subscript, "indices").named_child(0)
    assert found is not None
    return found


def _is_global(t: Text, subscript: Node) -> bool:
    """Whether a subscript's array is a buffer of the kernel, by its own name or a pointer's."""
    name = between(subscript, "argument")
    declared = t.declaration_of(t.of(name))
    return name.type == "identifier" and (declared is None or "[" not in t.of(declared))


def _whole_sums(t: Text) -> Iterator[Node]:
    """Outermost whole sums and products in indices, in pointers, and in what initialises whole locals."""
    for node in t.inside("binary_expression"):
        if operator(node) not in ("+", "*") or not t.is_whole(node):
            continue
        parents = list(around(node))
        if parents[0].type == "binary_expression" and t.is_whole(parents[0]):
            continue
        for one in parents:
            if one.type in ("subscript_argument_list", "pointer_expression"):
                yield node
                break
            if one.type == "declaration":
                if t.of(between(one, "type")) in _WHOLE_TYPES:
                    yield node
                break
            if one.type.endswith("statement") or one.type == "condition_clause":
                break


def _commuted(t: Text, node: Node, rng: Random) -> str:
    if node.type in GROUPED:
        return f"({_commuted(t, bare(node), rng)})"
    if node.type != "binary_expression" or operator(node) not in ("+", "*", "-"):
        return t.of(node)
    sign, a, b = operator(node), between(node, "left"), between(node, "right")
    left, right = _commuted(t, a, rng), _commuted(t, b, rng)
    if sign == "-" or rng.random() < 0.4:
        return f"{left} {sign} {right}"
    inner = operator(a) if a.type == "binary_expression" else ""
    return f"{right} {sign} {left}" if inner in ("", "*", sign) else f"{right} {sign} ({left})"


def commute_indices(text: str, rng: Random) -> str:
    """`n * row + i`, `i + row * n`."""
    t = Text(text)
    return at_some(text, [[(s.start_byte, s.end_byte, _commuted(t, s, rng))] for s in _whole_sums(t)], rng)


def _pointed(t: Text, subscript: Node, rng: Random) -> str:
    array, index = between(subscript, "argument"), _index(subscript)
    x, e = t.of(array), t.of(index)
    if index.type not in ("binary_expression", "parenthesized_expression") or operator(index) not in "+-*":
        e = factor(e, index)
    ways = [f"*({x} + {e})", f"*({e} + {x})"]
    if index.type == "binary_expression" and operator(index) == "+":
        a, b = (t.of(between(index, side)) for side in ("left", "right"))
        ways += [f"({x} + {a})[{b}]"] * 2
    if index.type == "binary_expression" and operator(index) == "-":
        a, b = (t.of(between(index, side)) for side in ("left", "right"))
        ways += [f"({x} + {a})[-{b}]"] * b.isdigit()
    return rng.choice(ways)


def add_to_pointers(text: str, rng: Random) -> str:
    """`*(x + row * n + i)`, `*(row * n + i + x)`, `(x + row * n)[i]`."""
    t = Text(text)
    sites = [
        [(s.start_byte, s.end_byte, _pointed(t, s, rng))]
        for s in t.inside("subscript_expression")
        if between(s, "argument").type == "identifier"
    ]
    return at_some(text, sites, rng)


def point_at_rows(text: str, rng: Random) -> str:
    """`const float *from = x + row * n;` and `from[i]`."""
    t = Text(text)
    groups: dict[tuple[str, str], list[Node]] = {}
    for s in t.inside("subscript_expression"):
        index = _index(s)
        if index.type == "binary_expression" and operator(index) == "+" and _is_global(t, s):
            for side in ("left", "right"):
                part = between(index, side)
                if t.is_constant(part) and part.type != "number_literal" and t.is_whole(part):
                    groups.setdefault((t.of(between(s, "argument")), t.of(part)), []).append(s)
    sites: list[Site] = []
    for (array, start), subscripts in groups.items():
        part = next(
            between(_index(subscripts[0]), side)
            for side in ("left", "right")
            if t.of(between(_index(subscripts[0]), side)) == start
        )
        place = t.earliest(part)
        if place is None:
            continue
        pointer = t.declaration_of(array)
        place = place if pointer is None else max(place, pointer.end_byte)
        name = t.fresh(f"{array}_row{len(sites) or ''}")
        space = "__global " if t.is_opencl else ""
        constant = "const " if re.search(rf"const \w+ \*{array}\b", text) else ""
        kind = t.types[array]
        edits: list[Edit] = [(place, place, f"\n  {space}{constant}{kind}{name} = {array} + {start};")]
        for s in subscripts:
            left, right = (between(_index(s), side) for side in ("left", "right"))
            rest = right if t.of(left) == start else left
            edits.append((s.start_byte, s.end_byte, f"{name}[{t.of(rest)}]"))
        sites.append(edits)
    return at_some(text, sites, rng, most=2)


def name_indices(text: str, rng: Random) -> str:
    """`int at = row * n + i;` before the statement that uses it."""
    t = Text(text)
    sites: list[Site] = []
    name = t.fresh("at")
    for s in t.inside("subscript_expression"):
        index, statement = _index(s), statement_of(s)
        if index.type != "binary_expression" or not t.is_whole(index) or statement is None:
            continue
        if statement.type == "declaration" and statement.parent.type != "compound_statement":  # type: ignore[union-attr]
            continue
        edits: list[Edit] = list(before(statement, f"int {name} = {t.of(index)};"))
        for same in within(statement, "subscript_expression"):
            if t.of(_index(same)) == t.of(index):
                edits.append((_index(same).start_byte, _index(same).end_byte, name))
        sites.append(edits)
    return at_some(text, sites, rng, most=1)


def name_parts_of_indices(text: str, rng: Random) -> str:
    """`int first = row * n;` where `row` is known, and `first` in every index."""
    t = Text(text)
    groups: dict[str, list[Node]] = {}
    for s in t.inside("subscript_argument_list"):
        for part in within(s, "binary_expression"):
            if t.is_whole(part) and t.is_constant(part):
                groups.setdefault(t.of(part), []).append(part)
    sites: list[Site] = []
    for written, parts in groups.items():
        place = t.earliest(parts[0])
        inside = [p for p in parts if not any(p != q and _covers(q, p) for q in parts)]
        if place is not None:
            name = t.fresh("first")
            made: Edit = (place, place, f"\n  int {name} = {written};")
            sites.append([made, *((p.start_byte, p.end_byte, name) for p in inside)])
    return at_some(text, sites, rng, most=1)


def _covers(a: Node, b: Node) -> bool:
    return a.start_byte <= b.start_byte and b.end_byte <= a.end_byte


def _coordinates(t: Text) -> Iterator[tuple[int, int, str]]:
    for found in COORDINATE.finditer(t.text, t.body.start_byte):
        yield found.start(), found.end(), found.group()


def name_coordinates(text: str, rng: Random) -> str:
    """`int tid = threadIdx.x;` at the start, and `tid` in its place."""
    t = Text(text)
    uses: dict[str, list[Edit]] = {}
    for start, end, written in _coordinates(t):
        uses.setdefault(written, []).append((start, end, written))
    if not uses:
        return text
    written = rng.choice(sorted(uses))
    name, place = t.fresh(f"my{len(written)}"), t.body.start_byte + 1
    some = rng.sample(uses[written], rng.randint(1, len(uses[written])))
    kind = rng.choice(("int ", "const int "))
    made: Edit = (place, place, f"\n  {kind}{name} = {written};")
    return edited(text, [made, *((s, e, name) for s, e, _ in some)])


def define_coordinates(text: str, rng: Random) -> str:
    """`#define ME (blockIdx.x * blockDim.x + threadIdx.x)`, `#define ME threadIdx.x`."""
    t = Text(text)
    groups: dict[str, list[Edit]] = {}
    for start, end, written in _coordinates(t):
        groups.setdefault(written, []).append((start, end, written))
    for node in t.inside("binary_expression"):
        whole = t.is_whole(node) and not t.names(node)
        if whole and COORDINATE.search(t.of(node)):
            groups.setdefault(f"({t.of(node)})", []).append((node.start_byte, node.end_byte, ""))
    if not groups:
        return text
    written, uses = rng.choice(sorted(groups.items()))
    name = t.fresh("ME")
    some = rng.sample(uses, rng.randint(1, len(uses)))
    apart = [u for u in some if not any(v is not u and v[0] <= u[0] and u[1] <= v[1] for v in some)]
    return f"#define {name} {written}\n" + edited(text, [(s, e, name) for s, e, _ in apart])


def define_indices(text: str, rng: Random) -> str:
    """`#define AT(R, C) ((R) * n + (C))`."""
    t = Text(text)
    sites: dict[str, list[Site]] = {}
    name = t.fresh("AT")
    for s in t.inside("subscript_argument_list"):
        index = s.named_child(0)
        if index is None or index.type != "binary_expression" or operator(index) not in ("+", "-"):
            continue
        found = re.fullmatch(r"(\w+|\([^()]*\)) \* (\w+) ([+-]) ([^()]+)", t.of(index))
        if found and found[2] in t.types and t.declaration_of(found[2]) is None and t.is_whole(index):
            row, width, sign, column = found.groups()
            column = column if sign == "+" else f"-{column}"
            row = row[1:-1] if row.startswith("(") else row
            sites.setdefault(width, []).append(
                [(index.start_byte, index.end_byte, f"{name}({row}, {column})")]
            )
    if not sites:
        return text
    width = rng.choice(sorted(sites))
    return f"#define {name}(R, C) ((R) * {width} + (C))\n" + at_some(text, sites[width], rng)


def cast_coordinates(text: str, rng: Random) -> str:
    """`(int)threadIdx.x`."""
    t = Text(text)
    return at_some(text, [[(s, e, f"(int){written}")] for s, e, written in _coordinates(t)], rng)


def widen_products(text: str, rng: Random) -> str:
    """`(size_t)row * n + i` in an index."""
    t = Text(text)
    sites = []
    for s in t.inside("subscript_argument_list"):
        for product in within(s, "binary_expression"):
            left = between(product, "left")
            if operator(product) == "*" and left.type == "identifier" and t.is_whole(product):
                place = left.start_byte
                sites.append([(place, place, "(size_t)")])
    return at_some(text, sites, rng)


def compare_without_sign(text: str, rng: Random) -> str:
    """`(unsigned)i < (unsigned)n`, where both are names or coordinates, which are never negative."""
    t = Text(text)
    sites = []
    for node in t.inside("binary_expression"):
        sides = [between(node, side) for side in ("left", "right")]
        plain = all(s.type == "identifier" or COORDINATE.fullmatch(t.of(s)) for s in sides)
        if operator(node) in ("<", "<=", ">", ">=") and plain and all(map(t.is_whole, sides)):
            sites.append([(s.start_byte, s.start_byte, "(unsigned)") for s in sides])
    return at_some(text, sites, rng)
