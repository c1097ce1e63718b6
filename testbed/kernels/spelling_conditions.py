"""Other spellings of comparisons, guards, branches and the braces around what they guard.

Each function takes a kernel's text and returns an equal kernel, changed at one or more drawn places.
"""

import re
from collections.abc import Iterator
from random import Random

from tree_sitter import Node

from testbed.kernels.spelling_text import Site, Text, at_some, bare, between, edited, factor, operator, within

_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_DENIED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}


def _comparisons(t: Text, under: Node) -> Iterator[Node]:
    """Comparisons of whole numbers; of other numbers the negation differs where one is not a number."""
    for node in within(under, "binary_expression"):
        sides = [between(node, side) for side in ("left", "right")]
        if operator(node) in _TURNED and all(map(t.is_whole, sides)):
            yield node


def _sides(t: Text, node: Node) -> tuple[str, str, str]:
    return t.of(between(node, "left")), operator(node), t.of(between(node, "right"))


def _plus(bound: str, more: int) -> str:
    """A bound and 1 more or less, as one would write it: `h - 2` for one less than `h - 1`."""
    if bound.isdigit():
        return str(int(bound) + more)
    found = re.fullmatch(r"(\w+) ([+-]) (\d+)", bound)
    if found:
        number = int(found[2] + found[3]) + more
        return f"{found[1]} {'-' if number < 0 else '+'} {abs(number)}" if number else found[1]
    return f"{bound} {'-' if more < 0 else '+'} 1"


def _compared(t: Text, node: Node, rng: Random) -> str:
    a, sign, b = _sides(t, node)
    denied, less, more = _DENIED[sign], _plus(b, -1), _plus(b, 1)
    ways = [f"{b} {_TURNED[sign]} {a}", f"!({a} {denied} {b})", f"!({b} {_TURNED[denied]} {a})"]
    ways += {
        "<": [f"{a} <= {less}", f"{less} >= {a}"],
        "<=": [f"{a} < {more}"],
        ">": [f"{a} >= {more}"],
        ">=": [f"{a} > {less}"],
    }.get(sign, [])
    return rng.choice(ways)


def turn_comparisons(text: str, rng: Random) -> str:
    """`n > i`, `i <= n - 1`, `!(i >= n)`."""
    t = Text(text)
    sites = [[(c.start_byte, c.end_byte, _compared(t, c, rng))] for c in _comparisons(t, t.body)]
    return at_some(text, sites, rng)


def _parts(t: Text, condition: Node) -> list[Node]:
    node = bare(condition)
    if node.type == "binary_expression" and operator(node) == "&&":
        return [*_parts(t, between(node, "left")), *_parts(t, between(node, "right"))]
    return [node]


def _denied(t: Text, node: Node) -> str:
    if next(_comparisons(t, node), None) == node:
        a, sign, b = _sides(t, node)
        return f"{a} {_DENIED[sign]} {b}"
    if node.type == "unary_expression" and operator(node) == "!":
        return t.of(bare(between(node, "argument")))
    return f"!({t.of(node)})"


def return_early(text: str, rng: Random) -> str:
    """`if (i >= n) return;` before the body that a guard was around; or a guard of two guards."""
    t = Text(text)
    last = t.body.named_children[-1]
    if last.type != "if_statement" or last.child_by_field_name("alternative") is not None:
        return text
    condition, guarded = between(last, "condition"), between(last, "consequence")
    parts = _parts(t, condition)
    inner = t.of(guarded)
    body = inner[1:-1].strip() if guarded.type == "compound_statement" else inner
    denied = [_denied(t, p) for p in parts]
    grouped = [f"({d})" if len(parts) > 1 and rng.random() < 0.3 else d for d in denied]
    ways = [
        f"if ({' || '.join(grouped)}) return;\n  {body}",
        f"if ({' || '.join(grouped)}) {{\n    return;\n  }}\n  {body}",
        f"if (!({t.of(condition)[1:-1]})) return;\n  {body}",
        "".join(f"if ({d}) return;\n  " for d in denied) + body,
        "".join(f"if ({t.of(p)}) " for p in parts) + inner,
    ]
    return edited(text, [(last.start_byte, last.end_byte, rng.choice(ways))])


def _bodies(t: Text) -> Iterator[Node]:
    for node in t.inside("if_statement", "for_statement", "while_statement"):
        yield between(node, "consequence" if node.type == "if_statement" else "body")


def spell_braces(text: str, rng: Random) -> str:
    """No braces around a single statement, or braces around one that stands alone."""
    t = Text(text)
    sites: list[Site] = []
    for body in _bodies(t):
        inner = body.named_children
        if body.type != "compound_statement":
            sites.append([(body.start_byte, body.start_byte, "{ "), (body.end_byte, body.end_byte, " }")])
        elif len(inner) == 1 and inner[0].type not in ("declaration", "if_statement"):
            sites.append([(body.start_byte, body.end_byte, t.of(inner[0]))])
    return at_some(text, sites, rng)


def branch_for_choice(text: str, rng: Random) -> str:
    """`if (c) y[i] = a; else y[i] = b;` for `y[i] = c ? a : b;`."""
    t = Text(text)
    sites: list[Site] = []
    for statement in t.inside("expression_statement"):
        found = statement.named_child(0)
        if found is None or found.type != "assignment_expression":
            continue
        choice = bare(between(found, "right"))
        if choice.type != "conditional_expression":
            continue
        head = f"{t.of(between(found, 'left'))} {operator(found)}"
        condition, a, b = (
            t.of(between(choice, part)) for part in ("condition", "consequence", "alternative")
        )
        condition = condition if not condition.startswith("(") else factor(condition, choice)
        ways = (
            f"{{ if ({condition}) {head} {a}; else {head} {b}; }}",
            f"{{ if ({condition}) {{ {head} {a}; }} else {{ {head} {b}; }} }}",
        )
        way = rng.choice(ways)
        alone = statement.parent is not None and statement.parent.type != "compound_statement"
        sites.append([(statement.start_byte, statement.end_byte, way if alone else way[2:-2])])
    return at_some(text, sites, rng)
