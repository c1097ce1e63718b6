"""Several contiguous elements per iteration, through wide loads and stores."""

from dataclasses import dataclass

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange, all_declined, limit
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Access, Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import (
    StridedLoop,
    depends,
    own_of_threads,
    team_loops,
    why_not_packs,
)
from warpsmith.extensions.rules.analysis.memory.vector_access import AccessGroup, groups, unit_stride
from warpsmith.extensions.rules.analysis.threads.thread_teams import Team
from warpsmith.source.tree.syntax_tree import Edit, apply_edits, contains, find

PARAMETER = "WS_VEC"
MAX_BYTES = 16

_CUDA = """\
#if WS_VEC > 1
// WS_VEC elements that are loaded and stored together, 16 bytes at a time at most.
template <typename T> struct alignas(sizeof(T) * WS_VEC < 16 ? sizeof(T) * WS_VEC : 16) WsPack {
  T lane[WS_VEC];
};
template <typename T> __device__ __forceinline__ bool ws_aligned(const T* p) {
  return reinterpret_cast<size_t>(p) % alignof(WsPack<T>) == 0;
}
template <typename T> __device__ __forceinline__ WsPack<T> ws_load(const T* p) {
  return *reinterpret_cast<const WsPack<T>*>(p);
}
template <typename T> __device__ __forceinline__ WsPack<T> ws_blank(const T*) { return WsPack<T>(); }
template <typename T> __device__ __forceinline__ void ws_store(T* p, const WsPack<T>& pack) {
  *reinterpret_cast<WsPack<T>*>(p) = pack;
}
#endif
"""
_OPENCL = """\
#if WS_VEC > 1
#define WS_JOIN_(a, b) a##b
#define WS_JOIN(a, b) WS_JOIN_(a, b)
#define WS_LOAD(p, lanes) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, p), 0, lanes)
#define WS_STORE(lanes, p) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, lanes), 0, p)
#define WS_LOAD_HALF(p, lanes) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload_half, WS_VEC)(0, p), 0, lanes)
#define WS_STORE_HALF(lanes, p) WS_JOIN(vstore_half, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, lanes), 0, p)
#endif
"""


_WIDEST_OPENCL = limit(f"{PARAMETER} <= 16", "OpenCL has vectors of 16 elements at most")


@dataclass(frozen=True)
class _Plan:
    loop: StridedLoop
    groups: list[AccessGroup]


class VectorWidth(Rule):
    """Turns a strided loop into a loop over packs of `WS_VEC` elements and a scalar one for the rest.

    Proven: iterations are independent except for sums, products, minima and maxima, and the wide access
    touches the same elements as the single ones. In CUDA a row that does not start at a multiple of the pack
    takes the scalar loop.
    """

    name = "vector_width"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts = draft.facts
        loops = team_loops(facts)
        if not loops:
            words = "no loop of the form `for (i = thread; i < n; i += threads)` of a block, warp or grid"
            return Declined(DeclineCode.FORM, words)
        planned = [_planned(facts, loop) for loop in loops]
        without = [p for p in planned if isinstance(p, Declined)]
        plans = _consistent(facts, [p for p in planned if isinstance(p, _Plan)], without)
        if not plans:
            return all_declined(without)
        edits = [_edit(draft, plan) for plan in plans]
        values = tuple(v for v in (1, 2, 4, 8) if v <= _most(draft, plans))
        if len(values) < 2:
            return Declined(DeclineCode.NO_GAIN, "elements are as wide as the widest access already")
        return draft.changed(
            RuleChange(
                self.name,
                f"{len(plans)} loop(s), {sum(len(p.groups) for p in plans)} wide accesses",
                edits=edits,
                prologue=_OPENCL if draft.is_opencl else _CUDA,
                launch=_smaller(draft, plans),
                parameters=(
                    Parameter(
                        name=PARAMETER,
                        values=values,
                        usual=values[:3][-1],  # 4: 16 bytes of floats, and any halves are wide
                        meaning="contiguous elements an iteration",
                    ),
                ),
                constraints=(_WIDEST_OPENCL,) if draft.is_opencl else (),
            )
        )


def _planned(facts: Facts, loop: StridedLoop) -> _Plan | Declined:
    reason = why_not_packs(facts, loop) or own_of_threads(facts, loop)
    if reason:
        return Declined(DeclineCode.DEPENDENCE, f"loop at line {loop.line}: {reason}")
    found = groups(facts, loop, rounds=True)
    if not found:
        return Declined(DeclineCode.FORM, f"loop at line {loop.line}: no contiguous loads or stores")
    return _Plan(loop, found)


def _smaller(draft: Draft, plans: list[_Plan]) -> Launch:
    """The launch with fewer blocks along the axes of the grid that only loops over packs share.

    Such a loop strides over however many blocks there are, and has `WS_VEC` times fewer iterations.
    """
    facts, launch = draft.facts, draft.kernel.launch
    grid = list(launch.grid)
    for n, axis in enumerate(AXES[: len(grid)] if not draft.is_opencl else ""):
        heads = [
            part
            for p in plans
            if p.loop.axis == axis and p.loop.team in (Team.GRID, Team.GRID_OF_LANES)
            for part in (p.loop.start, p.loop.step)
        ]
        uses = [u for kind in ("bid", "gdim") for u in facts.uses_of(kind, axis)]
        if heads and uses and all(any(contains(head, u) for head in heads) for u in uses):
            grid[n] = Expression(f"ceil_div({grid[n].text}, {PARAMETER})")
    return launch.model_copy(update={"grid": tuple(grid)})


def _consistent(facts: Facts, plans: list[_Plan], without: list[Declined]) -> list[_Plan]:
    """Drop loops whose elements would be accessed by other threads in another loop without a barrier
    between."""
    kept = plans
    while found := next(((p, why) for p in kept if (why := _meets(facts, p, kept))), None):
        words = f"loop at line {found[0].loop.line}: {found[1]}"
        without.append(Declined(DeclineCode.DEPENDENCE, words))
        kept = [p for p in kept if p is not found[0]]
    return kept


def _meets(facts: Facts, plan: _Plan, plans: list[_Plan]) -> str | None:
    """The reason why another thread may touch a buffer of a loop with wide accesses elsewhere; None if none
    does."""
    mine = _buffers(facts, plan.loop)
    for a in facts.accesses(facts.source.body):
        if plan.loop.contains(a.node) or a.root is None or a.root.name not in mine:
            continue
        harmless = (
            not (a.writes or mine[a.root.name])
            or _other_threads(facts, plan.loop, a)
            or _is_parted(facts, plan, a)
            or any(p.loop.contains(a.node) and _is_alike(facts, p, plan) for p in plans)
        )
        if not harmless:
            return f"{a.root.name} is used elsewhere, and no barrier lies between"
    return None


def _buffers(facts: Facts, loop: StridedLoop) -> dict[str, bool]:
    """Buffers of a loop that other threads may access too; True for those that the loop writes."""
    found: dict[str, bool] = {}
    for a in facts.accesses(loop.node):
        if a.root is not None and (a.root.is_parameter or a.writes):
            found[a.root.name] = found.get(a.root.name, False) or a.writes
    return found


def _is_parted(facts: Facts, plan: _Plan, a: Access) -> bool:
    """True if a barrier for the loop's whole team lies between it and an access elsewhere.

    OpenCL's loops are not looked at.
    """
    if plan.loop.team in (Team.GRID, Team.GRID_OF_LANES):
        return False
    low, high = sorted((a.node.start_byte, plan.loop.node.start_byte))
    return not facts.is_opencl and _barrier_between(facts, low, high)


def _is_alike(facts: Facts, one: _Plan, other: _Plan) -> bool:
    """True if two loops give the same elements to the same threads."""
    of, a, b = facts.source.of, one.loop, other.loop
    same = (of(a.bound), of(a.start), of(a.step)) == (of(b.bound), of(b.start), of(b.step))
    return same and (facts.is_opencl or _guards(one) == _guards(other))


def _other_threads(facts: Facts, mine: StridedLoop, a: Access) -> bool:
    """True if an access of another strided loop is distributed over the threads in another way.

    If its elements were also this loop's elements, the original would have a race; so they are not.
    """
    for loop in team_loops(facts):
        if loop.node != mine.node and loop.contains(a.node):
            place = a.pointer if a.index is None else a.index
            return unit_stride(facts, loop, place) is None and depends(facts, place, loop)
    return False


def _barrier_between(facts: Facts, low: int, high: int) -> bool:
    for call in find(facts.source.body, "call_expression"):
        top = call.parent is not None and call.parent.parent == facts.source.body
        if low < call.start_byte < high and facts.source.callee(call) == "__syncthreads" and top:
            return True
    return False


def _most(draft: Draft, plans: list[_Plan]) -> int:
    """Limit on the elements of a pack: the narrowest element fills 16 bytes (OpenCL: vectors of 8)."""
    roots = [group.accesses[0].root for plan in plans for group in plan.groups]
    sizes = [draft.element_bytes.get(r.name, 4) for r in roots if r is not None]
    return 8 if draft.is_opencl else MAX_BYTES // min(sizes, default=4)


def _edit(draft: Draft, plan: _Plan) -> Edit:
    source, loop = draft.source, plan.loop
    start = loop.first_byte(source)
    original = source.between(start, loop.node.end_byte)
    text = _vector_loop(draft, plan)
    return Edit(start, loop.node.end_byte, f"\n#if {PARAMETER} == 1\n{original}\n#else\n{text}\n#endif\n")


def _vector_loop(draft: Draft, plan: _Plan) -> str:
    source, loop = draft.source, plan.loop
    kind, name = loop.variable.type_text, loop.variable.name
    start, step = source.of(loop.start), source.of(loop.step)
    loads, stores = [], []
    for n, g in enumerate(plan.groups):
        address = g.address("ws_first")
        if draft.is_opencl:
            half = "_HALF" if g.is_half_call else ""
            loads.append(f"{'float' if half else g.element} ws_pack_{n}[{PARAMETER}];")
            if g.loads:
                loads.append(f"WS_LOAD{half}({address}, ws_pack_{n});")
            if g.stores:
                stores.append(f"WS_STORE{half}(ws_pack_{n}, {address});")
        elif g.rounds is not None:
            first = g.rounds.in_round(address, g.rounds.first)
            pack = f"ws_pack_{n}[{g.rounds.place()}]"
            loads.append(f"decltype(ws_blank({first})) ws_pack_{n}[{g.rounds.count}];")
            loads.append("#pragma unroll")
            loads.append(f"{g.rounds.head(source)} {pack} = ws_load({address});")
        else:
            loads.append(f"auto ws_pack_{n} = {'ws_load' if g.loads else 'ws_blank'}({address});")
            if g.stores:
                stores.append(f"ws_store({address}, ws_pack_{n});")
    guards = _guards(plan)
    guard = "" if draft.is_opencl else " && ".join(guards)
    vectors = f"ws_count / {PARAMETER}"
    lines = [
        "{",
        f"  const {kind} ws_count = {source.of(loop.bound)};",
        f"  const {kind} ws_packs = {f'{guard} ? {vectors} : 0' if guard else vectors};",
        f"  for ({kind} ws_i = {start}; ws_i < ws_packs; ws_i += {step}) {{",
        f"    const {kind} ws_first = ws_i * {PARAMETER};",
        *(f"    {line}" for line in loads),
        "#pragma unroll",
        f"    for (int ws_lane = 0; ws_lane < {PARAMETER}; ++ws_lane) {{",
        f"      const {kind} {name} = ws_first + ws_lane;",
        f"      {_lane_body(draft, plan)}",
        "    }",
        *(f"    {line}" for line in stores),
        "  }",
        f"  for ({kind} {name} = ws_packs * {PARAMETER} + ({start}); {name} < ws_count; {name} += {step})",
        f"    {source.of(loop.body)}",
        "}",
    ]
    return "\n".join(lines)


def _guards(plan: _Plan) -> list[str]:
    """Conditions under which all first elements of packs are aligned."""
    first, found = f"({plan.loop.variable.type_text})0", []
    for g in plan.groups:
        address, rounds = g.address(first), g.rounds
        if rounds is None:
            found.append(f"ws_aligned({address})")
        else:
            numbers = rounds.deciding(g.index)
            found += [f"ws_aligned({rounds.in_round(address, n)})" for n in numbers]
    return list(dict.fromkeys(found))


def _lane_body(draft: Draft, plan: _Plan) -> str:
    source, body = draft.source, plan.loop.body
    edits: list[Edit] = []
    inner = {}
    for n, group in enumerate(plan.groups):
        lane = f"ws_pack_{n}[ws_lane]" if draft.is_opencl else f"ws_pack_{n}.lane[ws_lane]"
        if group.rounds is not None:
            lane = f"ws_pack_{n}[{group.rounds.place()}].lane[ws_lane]"
            inner[group.rounds.loop.node.id] = group.rounds
        edits += group.lane_edits(source, body.start_byte, lane)
    for rounds in inner.values():
        edits += rounds.unrolled(source, body.start_byte)
    return apply_edits(source.of(body), edits)
