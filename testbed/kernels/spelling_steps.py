"""Other spellings of loops, assignments and locals.

Each function takes a kernel's text and returns an equal kernel, changed at one or more drawn places.
"""

import re
from random import Random

from tree_sitter import Node

from testbed.kernels.spelling_text import (
    Edit,
    Site,
    Text,
    at_some,
    bare,
    before,
    between,
    factor,
    operator,
    statement_of,
    within,
)


def _loops(t: Text) -> list[Node]:
    """Loops that have all three parts, and no `continue`."""
    parts = ("initializer", "condition", "update")
    return [
        loop
        for loop in t.inside("for_statement")
        if all(loop.child_by_field_name(p) is not None for p in parts)
        and not list(within(loop, "continue_statement"))
    ]


def _inner_text(t: Text, body: Node) -> str:
    return t.of(body)[1:-1].rstrip() if body.type == "compound_statement" else f" {t.of(body)}"


def _is_alone(t: Text, loop: Node, counter: str) -> bool:
    """Whether the counter may be declared beside the loop: nothing else in the kernel has its name."""
    beside = loop.parent is not None and loop.parent.type == "compound_statement"
    return beside and t.is_declared_once(counter)


def _counter(t: Text, loop: Node) -> str:
    return t.of(next(within(between(loop, "initializer"), "identifier")))


def loop_by_while(text: str, rng: Random) -> str:
    """`int i = lane; while (i < n) { ...; i += s; }`."""
    t = Text(text)
    sites: list[Site] = []
    for loop in _loops(t):
        first = t.of(between(loop, "initializer")).rstrip(";") + ";"
        test, step = (t.of(between(loop, p)) for p in ("condition", "update"))
        body = _inner_text(t, between(loop, "body"))
        made = f"{first}\n  while ({test}) {{{body}\n    {step};\n  }}"
        alone = _is_alone(t, loop, _counter(t, loop))
        sites.append([(loop.start_byte, loop.end_byte, made if alone else f"{{\n  {made}\n  }}")])
    return at_some(text, sites, rng)


def declare_counters_before(text: str, rng: Random) -> str:
    """`int i; for (i = lane; ...)`, `int i = lane; for (; ...)`; one declaration for several loops."""
    t = Text(text)
    groups: dict[tuple[int, str], list[Node]] = {}
    for loop in _loops(t):
        if between(loop, "initializer").type == "declaration" and loop.parent is not None:
            groups.setdefault((loop.parent.start_byte, _counter(t, loop)), []).append(loop)
    sites: list[Site] = []
    for (_, counter), loops in groups.items():
        starts = [between(loop, "initializer") for loop in loops]
        kind = t.of(between(starts[0], "type"))
        plain = [(s.start_byte, between(s, "declarator").start_byte, "") for s in starts]
        place = loops[0].start_byte
        others = len(re.findall(rf"\bint {counter}\b", text)) - len(loops)
        if loops[0].parent is not None and loops[0].parent.type == "compound_statement" and not others:
            edits: list[Edit] = [(place, place, f"{kind} {counter};\n  "), *plain]
            sites.append(edits)
        for loop, start in zip(loops, starts, strict=True):
            declared = t.of(start).rstrip(";")
            if rng.random() < 0.5:
                head, kept = f"{kind} {counter};", re.sub(rf"^{kind} ", "", declared)
            else:
                head, kept = f"{declared};", ""
            end = start.end_byte - t.of(start).endswith(";")
            before_loop = f"{head}\n  "
            around = [(loop.start_byte, loop.start_byte, before_loop)]
            if not _is_alone(t, loop, counter):
                around = [
                    (loop.start_byte, loop.start_byte, f"{{ {before_loop}"),
                    (loop.end_byte, loop.end_byte, " }"),
                ]
            sites.append([*around, (start.start_byte, end, kept)])
    return at_some(text, sites, rng)


def _assignments(t: Text) -> list[Node]:
    """Assignments and updates whose value nobody uses."""
    found = []
    for node in t.inside("assignment_expression", "update_expression"):
        parent = node.parent
        assert parent is not None
        if parent.type == "expression_statement" or (
            parent.type == "for_statement" and parent.child_by_field_name("update") == node
        ):
            found.append(node)
    return found


def spell_steps(text: str, rng: Random) -> str:
    """`i = i + s`, `i = s + i` for `i += s`, of whole numbers."""
    t = Text(text)
    sites = []
    for node in _assignments(t):
        if operator(node) != "+=" or not t.is_whole(between(node, "left")):
            continue
        i, s = t.of(between(node, "left")), t.of(between(node, "right"))
        sites.append([(node.start_byte, node.end_byte, rng.choice((f"{i} = {i} + {s}", f"{i} = {s} + {i}")))])
    return at_some(text, sites, rng)


def spell_increments(text: str, rng: Random) -> str:
    """`++i`, `i++`, `i += 1`, `i = i + 1`, `i = 1 + i`."""
    t = Text(text)
    sites = []
    for node in _assignments(t):
        if node.type == "update_expression" and operator(node) == "++":
            i = t.of(between(node, "argument"))
            ways = {f"++{i}", f"{i}++", f"{i} += 1", f"{i} = {i} + 1", f"{i} = 1 + {i}"} - {t.of(node)}
            sites.append([(node.start_byte, node.end_byte, rng.choice(sorted(ways)))])
    return at_some(text, sites, rng)


def define_steps(text: str, rng: Random) -> str:
    """`#define STEP blockDim.x` and `i += STEP`."""
    t = Text(text)
    groups: dict[str, list[Site]] = {}
    name = t.fresh("STEP")
    for node in _assignments(t):
        if operator(node) != "+=":
            continue
        step = between(node, "right")
        local = any(t.declaration_of(n) for n in t.names(step))
        if t.is_whole(step) and not local and not t.loads(step) and step.type != "number_literal":
            groups.setdefault(t.of(step), []).append([(step.start_byte, step.end_byte, name)])
    if not groups:
        return text
    step_text, sites = rng.choice(sorted(groups.items()))
    return f"#define {name} ({step_text})\n" + at_some(text, sites, rng)


def plain_assignments(text: str, rng: Random) -> str:
    """`sum = sum + v`, `sum = v + sum` for `sum += v`, and so for products and shifts."""
    t = Text(text)
    sites = []
    for node in _assignments(t):
        sign, value = operator(node)[:-1], between(node, "right") if "=" in operator(node) else None
        target = between(node, "left") if value is not None else None
        if value is None or target is None or sign not in ("+", "*", "-", "/", ">>"):
            continue
        if sign == "+" and t.is_whole(target):
            continue
        a, v = t.of(target), t.of(value)
        product = value.type == "binary_expression" and operator(value) in ("*", "/") and sign == "+"
        v = v if product else factor(v, value)
        ways = [f"{a} = {a} {sign} {v}"] + [f"{a} = {v} {sign} {a}"] * (sign in ("+", "*"))
        sites.append([(node.start_byte, node.end_byte, rng.choice(ways))])
    return at_some(text, sites, rng)


def wrap_in_parentheses(text: str, rng: Random) -> str:
    """Parentheses around operands, indices and values that need none.

    A name alone gets none as an operand: the grammar reads `(n) * k` as a cast.
    """
    t = Text(text)
    sites: list[Site] = []
    for node in t.inside("binary_expression", "subscript_argument_list", "init_declarator"):
        if node.type == "subscript_argument_list":
            inner = node.named_children
        elif node.type == "init_declarator":
            inner = [c for c in [node.child_by_field_name("value")] if c is not None]
        else:
            inner = [c for side in ("left", "right") if (c := between(node, side)).type != "identifier"]
        sites += [[(c.start_byte, c.start_byte, "("), (c.end_byte, c.end_byte, ")")] for c in inner]
    return at_some(text, sites, rng, most=4)


def name_loads(text: str, rng: Random) -> str:
    """`float value = x[row * n + i];` before the statement that used it."""
    t = Text(text)
    sites: list[Site] = []
    name = t.fresh("value")
    for s in t.inside("subscript_expression"):
        array, statement = between(s, "argument"), statement_of(s)
        if statement is None or s.parent is None or array.type != "identifier":
            continue
        target = s.parent.type == "assignment_expression" and between(s.parent, "left") == s
        declares_it = s.parent.type == "init_declarator"
        if target or declares_it or t.of(array) not in t.types:
            continue
        kind = t.types[t.of(array)].removesuffix(" *")
        edits = [*before(statement, f"{kind} {name} = {t.of(s)};"), (s.start_byte, s.end_byte, name)]
        sites.append(edits)
    return at_some(text, sites, rng, most=1)


def inline_locals(text: str, rng: Random) -> str:
    """What a whole local was made of, in place of its name."""
    t = Text(text)
    sites: list[Site] = []
    for node in t.inside("declaration"):
        (declarator, *more) = node.children_by_field_name("declarator")
        parent = node.parent
        value = declarator.child_by_field_name("value")
        if more or value is None or parent is None or parent.type != "compound_statement":
            continue
        name = t.of(between(declarator, "declarator"))
        if t.types.get(name) != "int" or not t.is_whole(value) or t.loads(value):
            continue
        changed = {n for n, place in t.changes if n == name or node.end_byte <= place < parent.end_byte}
        hidden = any(re.search(rf"\b{name}\b", meaning) for meaning in t.macros.values())
        if hidden or not t.is_declared_once(name) or changed & {name, *t.names(value)}:
            continue
        uses = [u for u in t.inside("identifier") if t.of(u) == name and u.start_byte >= node.end_byte]
        text_of_it = factor(t.of(value), bare(value) if value.type == "identifier" else value)
        if uses:
            gone: Edit = (node.start_byte, node.end_byte, "")
            sites.append([gone, *((u.start_byte, u.end_byte, text_of_it) for u in uses)])
    return at_some(text, sites, rng, most=1)
