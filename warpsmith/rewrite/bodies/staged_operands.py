"""Operands of a loop that the threads of a block load into local memory together."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.space import Constraint
from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.analysis.indices.guarded_element import Element, Place
from warpsmith.rewrite.analysis.kernel_facts import AXES, Access, Facts
from warpsmith.rewrite.analysis.language_words import Words
from warpsmith.rewrite.analysis.loops.live_variables import Split
from warpsmith.rewrite.analysis.operations import operands, operator
from warpsmith.rewrite.analysis.values.uniform_values import uniform_text, written_out
from warpsmith.rewrite.source.syntax_tree import Edit, Variable, apply_edits, strip

STAGE = "WS_STAGE"
_MOST = 4
_LANES = re.compile(r"(?:char|short|int|long|float|double|half)(2|3|4|8|16)$")


@dataclass(frozen=True)
class Staged:
    """One operand: `a[i * nk + k]` for the block's indices along one axis and some iterations."""

    name: str
    place: Place
    extent: str
    """Number of indices of a block, as C text."""
    kind: str
    element_bytes: int
    text: str
    """The access, with locals expanded."""
    along_loop: bool
    """True if neighbouring iterations, not neighbouring indices, are adjacent in memory."""
    nodes: tuple[Node, ...]

    @property
    def row(self) -> str:
        """Elements from one iteration to the next; one extra element keeps columns in different banks."""
        return f"({self.extent} + 1)"


def staged(draft: Draft, element: Element, split: Split, tiles: Mapping[str, str]) -> tuple[Staged, ...]:
    """Reads of the loop that depend on the counter and on one coordinate only.

    Args:
        tiles: parameters for the number of elements per thread, by axis.
    """
    facts = draft.facts
    known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
    block = [e.text for e in draft.kernel.launch.block]
    if not all(e.isdecimal() or e in known for e in block):
        return ()
    written = {a.root.name for a in facts.accesses(facts.source.body) if a.writes and a.root is not None}
    found: dict[str, Staged] = {}
    for a in facts.accesses(split.loop.body):
        one = _one(draft, element, split, a)
        if one is None or a.root is None or a.root.name in written:
            continue
        place, text = one
        if text in found:
            old = found[text]
            found[text] = replace(old, nodes=(*old.nodes, a.node))
            continue
        size = bytes_of(draft, a.root)
        if size is None or len(found) == _MOST or a.index is None:
            continue
        n = AXES.index(place.axis)
        extent = block[n] if n < len(block) else "1"
        extent = f"({extent} * {tiles[place.axis]})" if place.axis in tiles else f"({extent})"
        name = f"ws_stage_{len(found)}"
        along = is_unit(facts, a.index, split.loop.variable.name)
        found[text] = Staged(name, place, extent, a.root.type_text, size, text, along, (a.node,))
    return tuple(found.values())


def _one(draft: Draft, element: Element, split: Split, a: Access) -> tuple[Place, str] | None:
    facts, source = draft.facts, draft.source
    direct = a.node.type == "subscript_expression" and a.root is not None and a.root.is_parameter
    if not direct or a.writes or a.index is None or facts.variable(strip(a.pointer)) != a.root:
        return None
    counter = split.loop.variable.name
    for p in element.places:
        text = written_out(facts, a.index, frozenset({p.name, counter}))
        if text is None:
            continue
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        if p.name in words and counter in words:
            return p, f"{source.of(a.pointer)}[{text}]"
    return None


def bytes_of(draft: Draft, root: Variable) -> int | None:
    """Bytes of an element of a parameter's buffer; None if the job does not give them."""
    order = [v.name for v in draft.source.variables if v.is_parameter and v.scope == draft.source.kernel]
    if root.name not in order or order.index(root.name) >= len(draft.kernel.arguments):
        return None
    lanes = _LANES.search(root.kind)
    count = int(lanes.group(1)) if lanes else 1
    size = draft.kernel.arguments[order.index(root.name)].dtype.size_bytes
    return size * (4 if count == 3 else count)


def is_unit(facts: Facts, index: Node, name: str) -> bool:
    """True if the index is a sum with the counter itself as one term."""
    index = strip(index)
    if index.type == "binary_expression" and operator(index) == "+":
        return any(is_unit(facts, o, name) for o in operands(index))
    return facts.source.of(index) == name


def stages_fit(stages: tuple[Staged, ...]) -> Constraint:
    """The constraint that local memory is large enough."""
    total = " + ".join(f"{s.row} * {s.element_bytes}" for s in stages)
    return Constraint(
        expression=Expression(f"{STAGE} * ({total}) <= device.max_shared_per_block"),
        reason="the device has no more local memory for a block",
    )


def local_arrays(words: Words, stages: tuple[Staged, ...]) -> list[str]:
    """Declarations of the staged arrays."""
    return [f"{words.shared} {s.kind} {s.name}[{STAGE} * {s.row}];" for s in stages]


def fill(draft: Draft, split: Split, stages: tuple[Staged, ...], *, whole: bool) -> list[str]:
    """Code in which every thread of the block loads its part of the iterations from `ws_k0` on."""
    words, loop = Words(draft.is_opencl), split.loop
    axes = AXES[: len(draft.kernel.launch.block)]
    thread, threads = words.thread(axes[-1]), " * ".join(words.threads(a) for a in axes)
    for axis in reversed(axes[:-1]):
        thread = f"({thread}) * {words.threads(axis)} + {words.thread(axis)}"
    lines = []
    for s in stages:
        p, near, far = s.place, *((STAGE, s.extent) if s.along_loop else (s.extent, STAGE))
        iteration, at = f"ws_n % {near}", f"ws_n / {near}"
        if not s.along_loop:
            iteration, at = at, iteration
        index = f"ws_first_{p.axis} + {at}"
        lines += [
            f"for (int ws_n = {thread}; ws_n < {near} * {far}; ws_n += {threads}) {{",
            f"const {loop.variable.type_text} {loop.variable.name} = ws_k0 + {iteration};",
            f"const {p.kind} ws_own = {index};",
            f"const {p.kind} {p.name} = {clamped(p, 'ws_own', whole=whole)};",
            f"if ({loop.variable.name} {loop.sign} ({uniform_text(draft.facts, loop.bound)}))",
            f"{s.name}[({iteration}) * {s.row} + {at}] = {s.text};",
            "}",
        ]
    return lines


def clamped(p: Place, text: str, *, whole: bool) -> str:
    """An index clamped to its bounds; unchanged if it is known to be within them."""
    if whole:
        return text
    for low in p.lows:
        text = f"({text} < {low} ? ({p.kind}){low} : {text})"
    for high in p.highs:
        text = f"({text} < {high} ? {text} : ({p.kind})({high} - 1))"
    return text


def staged_body(draft: Draft, split: Split, stages: tuple[Staged, ...]) -> str:
    """The loop's body, reading the staged arrays."""
    body = split.loop.body
    edits = []
    for s in stages:
        axis = s.place.axis
        text = f"{s.name}[(ws_k - ws_k0) * {s.row} + (ws_own_{axis} - ws_first_{axis})]"
        edits += [Edit(n.start_byte - body.start_byte, n.end_byte - body.start_byte, text) for n in s.nodes]
    return apply_edits(draft.source.of(body), edits)
