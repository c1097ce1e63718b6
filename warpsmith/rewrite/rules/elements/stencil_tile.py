"""Loads a buffer that neighbouring threads read into local memory once."""

from warpsmith.domain.declined_rule import DeclineCode
from warpsmith.domain.expressions import Expression
from warpsmith.domain.space import Constraint, Parameter
from warpsmith.rewrite.analysis.draft import Change, Declined, Draft, Rule, Variant
from warpsmith.rewrite.analysis.indices.guarded_element import Element, Place, find_element
from warpsmith.rewrite.analysis.indices.neighbour_reads import Neighbours, find_neighbours
from warpsmith.rewrite.analysis.kernel_facts import AXES
from warpsmith.rewrite.analysis.language_words import Words
from warpsmith.rewrite.bodies.staged_operands import bytes_of
from warpsmith.rewrite.source.syntax_tree import Edit, apply_edits

HALO = "WS_HALO"
_MOST = 4


class StencilTile(Rule):
    """Stages the elements of a block and their neighbours in local memory.

    Proven: the buffer is never written, every element within bounds reads the same distances, and an element
    of memory is loaded only if some thread of the block would read it.
    """

    name = "stencil_tile"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        element = find_element(facts)
        if isinstance(element, str):
            return Declined(DeclineCode.FORM, element)
        unsafe = facts.unsafe(facts.source.body)
        if unsafe:
            return Declined(DeclineCode.DEPENDENCE, f"threads would not be independent: {unsafe}")
        if any(v.is_shared for v in facts.source.variables):
            return Declined(DeclineCode.DEPENDENCE, "the kernel has shared memory of its own")
        known = {p.name for p in (*draft.parameters, *draft.job.parameters)}
        block = [e.text for e in draft.kernel.launch.block]
        if not all(e.isdecimal() or e in known for e in block):
            return Declined(
                DeclineCode.LAUNCH, "an extent of the block is an expression that the source cannot name"
            )
        found, reason = find_neighbours(facts, element)
        sizes = [bytes_of(draft, n.root) for n in found]
        if not found or len(found) > _MOST or None in sizes:
            return Declined(DeclineCode.FORM, reason)
        if HALO in draft.names() or HALO in draft.kernel.text:
            return Declined(DeclineCode.NAME_TAKEN, f"the name {HALO} is taken")
        total = " + ".join(
            f"{size} * " + " * ".join(_width(draft, n, p) for p in n.places)
            for n, size in zip(found, sizes, strict=True)
        )
        parameter = Parameter(
            name=HALO,
            values=(0, 1),
            usual=1,  # the textbook's form: each neighbour is read from memory once a block
            meaning="1: neighbours are staged in local memory",
        )
        fits = Constraint(
            expression=Expression(f"{HALO} == 0 or {total} <= device.max_shared_per_block"),
            reason="the device has no more local memory for a block",
        )
        names = frozenset(p.name for p in (*draft.parameters, parameter))
        return draft.changed(
            Change(
                self.name,
                ", ".join(f"{n.root.name} at {len(n.distances)} distances" for n in found),
                parameters=(parameter,),
                constraints=(fits,),
                variant=Variant(
                    Expression(f"{HALO} == 1"),
                    f"{HALO} == 1",
                    _body(draft, element, found),
                    draft.kernel.launch.grid,
                    names,
                ),
            )
        )


def _extent(draft: Draft, p: Place) -> str:
    block = draft.kernel.launch.block
    n = AXES.index(p.axis)
    return block[n].text if n < len(block) else "1"


def _width(draft: Draft, n: Neighbours, p: Place) -> str:
    low, high = n.span(n.places.index(p))
    return f"({_extent(draft, p)} + {high - low})"


def _body(draft: Draft, element: Element, found: list[Neighbours]) -> str:
    words, source = Words(draft.is_opencl), draft.source
    lines = []
    for m, n in enumerate(found):
        size = " * ".join(_width(draft, n, p) for p in n.places)
        lines.append(f"{words.shared} {n.root.type_text} ws_near_{m}[{size}];")
    axes = AXES[: len(draft.kernel.launch.block)]
    thread, threads = words.thread(axes[-1]), " * ".join(words.threads(a) for a in axes)
    for axis in reversed(axes[:-1]):
        thread = f"({thread}) * {words.threads(axis)} + {words.thread(axis)}"
    for p in element.places:
        lines += [
            f"const {p.kind} ws_first_{p.axis} = {words.block(p.axis)} * {words.threads(p.axis)}{p.offset};",
        ]
    uniform = " && ".join(element.uniform)
    for m, n in enumerate(found):
        lines += [f"if ({uniform})"] if uniform else []
        lines += _fill(draft, n, f"ws_near_{m}", thread, threads)
    lines.append(words.barrier)
    edits = []
    start, end = source.body.start_byte + 1, source.body.end_byte - 1
    for m, n in enumerate(found):
        for node, distance in n.reads:
            text = f"ws_near_{m}[{_slot(draft, n, distance)}]"
            edits.append(Edit(node.start_byte - start, node.end_byte - start, text))
    return "\n".join([*lines, "{", apply_edits(source.between(start, end), edits), "}"])


def _slot(draft: Draft, n: Neighbours, distance: tuple[int, ...]) -> str:
    words, text = Words(draft.is_opencl), ""
    for m, p in enumerate(n.places):
        at = f"({words.thread(p.axis)} + {distance[m] - n.span(m)[0]})"
        text = f"({text}) * {_width(draft, n, p)} + {at}" if text else at
    return text


def _fill(draft: Draft, n: Neighbours, name: str, thread: str, threads: str) -> list[str]:
    size = " * ".join(_width(draft, n, p) for p in n.places)
    lines = [f"for (int ws_n = {thread}; ws_n < {size}; ws_n += {threads}) {{"]
    below = ""
    for m in reversed(range(len(n.places))):
        p, width = n.places[m], _width(draft, n, n.places[m])
        at = f"ws_n / ({below}) % {width}" if below else f"ws_n % {width}"
        below = f"{below} * {width}" if below else width
        lines.append(f"const {p.kind} {p.name} = ws_first_{p.axis} + ({at}) + ({n.span(m)[0]});")
    wanted = " || ".join(
        "(" + " && ".join(c for m, p in enumerate(n.places) for c in _read(draft, p, d[m])) + ")"
        for d in n.distances
    )
    return [*lines, f"if ({wanted}) {name}[ws_n] = {n.root.name}[{n.index}];", "}"]


def _read(draft: Draft, p: Place, distance: int) -> list[str]:
    """Conditions under which a thread of the block, within bounds, has that distance from an element."""
    own = f"({p.name} - ({distance}))"
    found = [f"{own} >= ws_first_{p.axis}", f"{own} < ws_first_{p.axis} + {_extent(draft, p)}"]
    return [*found, *(f"{own} >= {low}" for low in p.lows), *(f"{own} < {high}" for high in p.highs)]
