"""Body of a kernel whose threads keep their part of a row in registers from one loop to the next."""

from dataclasses import dataclass

from warpsmith.extensions.rules.analysis.draft import Draft
from warpsmith.extensions.rules.analysis.loops.strided_loops import StridedLoop
from warpsmith.extensions.rules.analysis.memory.repeated_rows import KeptElement, LoopChain
from warpsmith.extensions.rules.analysis.memory.vector_access import AccessGroup
from warpsmith.extensions.rules.bodies.wide_access import wide_access
from warpsmith.source.tree.syntax_tree import Edit, apply_edits, find

KEEP, PACK = "WS_KEEP", "WS_KEEP_PACK"

CUDA = f"#if {KEEP} > 0\n{wide_access(PACK, 'ws_keep', 'WsKeep')}#endif\n"
OPENCL = f"""\
#if {KEEP} > 0
#if {PACK} == 1
#define WS_KEEP_LOAD(p, lanes) *(lanes) = *(p)
#define WS_KEEP_STORE(lanes, p) *(p) = *(lanes)
#define WS_KEEP_LOAD_HALF(p, lanes) *(lanes) = vload_half(0, p)
#define WS_KEEP_STORE_HALF(lanes, p) vstore_half(*(lanes), 0, p)
#else
#define WS_KEEP_JOIN_(a, b) a##b
#define WS_KEEP_JOIN(a, b) WS_KEEP_JOIN_(a, b)
#define WS_KEEP_VLOAD WS_KEEP_JOIN(vload, {PACK})
#define WS_KEEP_VSTORE WS_KEEP_JOIN(vstore, {PACK})
#define WS_KEEP_LOAD(p, lanes) WS_KEEP_VSTORE(WS_KEEP_VLOAD(0, p), 0, lanes)
#define WS_KEEP_STORE(lanes, p) WS_KEEP_VSTORE(WS_KEEP_VLOAD(0, lanes), 0, p)
#define WS_KEEP_LOAD_HALF(p, lanes) WS_KEEP_VSTORE(WS_KEEP_JOIN(vload_half, {PACK})(0, p), 0, lanes)
#define WS_KEEP_STORE_HALF(lanes, p) WS_KEEP_JOIN(vstore_half, {PACK})(WS_KEEP_VLOAD(0, lanes), 0, p)
#endif
#endif
"""


@dataclass(frozen=True)
class _GroupText:
    """Text of a group of accesses in one loop."""

    group: AccessGroup
    element: str
    """The element of the lane at hand."""
    before: tuple[str, ...]
    """Lines before the lanes: a declaration, a load."""
    after: tuple[str, ...]


class KeptRowText:
    """Writes the body: a thread's first `WS_KEEP` packs of a row stay in registers.

    What lies behind these packs goes through the loops as they are, so every length of a row is right.
    """

    def __init__(self, draft: Draft, chain: LoopChain) -> None:
        self._source = draft.source
        self._opencl = draft.is_opencl
        self._chain = chain

    def body(self) -> str:
        """The text between the braces of the kernel."""
        body = self._source.body
        start, end = body.start_byte + 1, body.end_byte - 1
        edits = []
        for n, loop in enumerate(self._chain.loops):
            first = loop.first_byte(self._source)
            edits.append(Edit(first - start, loop.node.end_byte - start, self._loop(n, loop)))
        return apply_edits(self._source.between(start, end), edits)

    def _declarations(self, n: int) -> list[str]:
        """Declarations before a loop: number of packs that are kept, and arrays of those it uses first."""
        loop = self._chain.loops[0]
        kind, of = loop.variable.type_text, self._source.of
        whole = f"(({kind})({of(loop.bound)})) / {PACK}"
        room = f"{KEEP} * ({kind})({of(loop.step)})"
        lines = [f"const {kind} ws_kept = {whole} < {room} ? {whole} : {room};"] if n == 0 else []
        for k, kept in enumerate(self._chain.kept):
            if kept.first == n:
                lines.append(self._array(f"ws_row_{k}", kept.uses[0][1], KEEP))
        for k, thing in enumerate(self._chain.objects):
            if thing.uses[0][0] == n:
                lines.append(f"{thing.kind} ws_object_{k}[{KEEP}];")
        return lines

    def _array(self, name: str, group: AccessGroup, packs: str) -> str:
        if self._opencl:
            return f"{'float' if group.is_half_call else group.element} {name}[{packs} * {PACK}];"
        element = group.element
        if element.split()[-1] == "auto":
            element = f"decltype(ws_keep_element(&{group.pointer}[0]))"
        return f"WsKeep<{element}> {name}[{packs}];"

    def _loop(self, n: int, loop: StridedLoop) -> str:
        of = self._source.of
        kind, name = loop.variable.type_text, loop.variable.name
        start, bound, step = (of(part) for part in (loop.start, loop.bound, loop.step))
        groups = [self._group(n, j, group) for j, group in enumerate(self._chain.groups[n])]
        edits: list[Edit] = []
        for g in groups:
            edits += g.group.lane_edits(self._source, loop.body.start_byte, g.element)
        for k, thing in enumerate(self._chain.objects):
            loaded, place = thing.of(n), f"ws_object_{k}[ws_round]"
            if loaded is not None:
                is_new = thing.uses[0][0] == n
                edits += loaded.edits(self._source, loop.body.start_byte, place, is_new=is_new)
        lines = [
            "",
            *self._declarations(n),
            "#pragma unroll",
            f"for (int ws_round = 0; ws_round < {KEEP}; ++ws_round) {{",
            f"  const {kind} ws_pack = ({start}) + ws_round * ({kind})({step});",
            "  if (ws_pack < ws_kept) {",
            f"    const {kind} ws_first = ws_pack * {PACK};",
            *(f"    {line}" for g in groups for line in g.before),
            "#pragma unroll",
            f"    for (int ws_lane = 0; ws_lane < {PACK}; ++ws_lane) {{",
            f"      const {kind} {name} = ws_first + ws_lane;",
            f"      {apply_edits(of(loop.body), edits)}",
            "    }",
            *(f"    {line}" for g in groups for line in g.after),
            "  }",
            "}",
            f"for ({kind} {name} = ws_kept * {PACK} + ({start}); {name} < ({bound}); {name} += {step})",
            f"  {of(loop.body)}",
        ]
        return "\n".join(lines) + "\n"

    def _group(self, n: int, j: int, group: AccessGroup) -> "_GroupText":
        """The text of the j-th group of accesses in loop `n`, whose pack is kept or lives for one round."""
        k = self._number(n, group)
        kept = None if k is None else self._chain.kept[k]
        place, lane = (f"ws_part_{j}", "0") if kept is None else (f"ws_row_{k}", "ws_round")
        before = [self._array(place, group, "1")] if kept is None else []
        address, half = group.address("ws_first"), "_HALF" if group.is_half_call else ""
        if self._opencl:
            pack, element = f"&{place}[{lane} * {PACK}]", f"{place}[{lane} * {PACK} + ws_lane]"
            load = f"WS_KEEP_LOAD{half}({address}, {pack});"
            store = f"WS_KEEP_STORE{half}({pack}, {address});"
        else:
            pack = f"{place}[{lane}]"
            element = f"{pack}.lane[ws_lane]"
            load, store = f"ws_keep_load({address}, {pack});", f"ws_keep_store({address}, {pack});"
        if group.loads and (kept is None or kept.first == n):
            before.append(load)
        is_stored = group.stores and (kept is None or self._is_last(n, kept))
        return _GroupText(group, element, (*before,), (store,) if is_stored else ())

    def _number(self, n: int, group: AccessGroup) -> int | None:
        """The number of what is kept of a loop's group; None if it is not kept."""
        return next((k for k, kept in enumerate(self._chain.kept) if kept.of(n) is group), None)

    def _is_last(self, n: int, kept: KeptElement) -> bool:
        """True if no later loop is sure to store the element again."""
        later = [m for m, group in kept.uses if group.stores and m > n]
        if not later:
            return True
        between = (self._chain.loops[n].node.end_byte, self._chain.loops[later[-1]].node.start_byte)
        leaving = find(self._source.body, "return_statement", "break_statement", "continue_statement")
        return any(between[0] <= place.start_byte < between[1] for place in leaving)
