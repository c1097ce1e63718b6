"""Constants of the source become parameters; the launch follows if it contains the same number."""

import re
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import (
    MORE_THREADS,
    Declined,
    Draft,
    Rule,
    RuleChange,
    all_declined,
    limit,
    product_of,
)
from warpsmith.extensions.rules.analysis.kernel_facts import AXES, Facts
from warpsmith.extensions.rules.analysis.launch.constant_uses import Constant, constants, meaning, uses
from warpsmith.extensions.rules.analysis.threads.block_places import only_warps
from warpsmith.extensions.rules.analysis.threads.warp_width import WARP, launches_by_warps
from warpsmith.extensions.rules.bodies.block_memory import (
    fits,
    grown,
    shared_fits,
    why_not,
    why_not_shared,
    with_shared_bytes,
)
from warpsmith.source.tree.syntax_tree import Edit, ancestors, contains

BLOCK = "WS_BLOCK"
_OF_GRID, _OF_BLOCK = ("grid.", "place.", "warps."), ("block.", "place.")
"""Beginnings of meanings that tie a constant to an axis of the grid, and of the block."""


@dataclass(frozen=True)
class _Ties:
    """Axes of the launch to which a constant is bound."""

    grid: frozenset[str]
    block: frozenset[str]
    warps: bool = False
    """True for the number of warps of a block: its x extent is 32 times as much."""


class LiftConstants(Rule):
    """Lifts tiles, block sizes and warps of a block.

    Proven: every use is a size, a step, a bound or a block's index, the constant divides the work instead of
    saying how much there is, and every extent of the launch with the same number is known to have the same
    meaning.
    """

    name = "lift_constants"
    keeps_accesses = True
    needs_no_macro = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        lifted = draft
        kept: list[Declined] = []
        own = {p.name for p in draft.job.parameters}
        for constant in constants(draft.facts):
            if constant.name in own:
                continue
            result = _lift(lifted, constant)
            if isinstance(result, Declined):
                kept.append(Declined(result.code, f"{constant.name}: {result.reason}"))
            else:
                lifted = result
        if lifted is not draft:
            return lifted
        return all_declined(kept) if kept else Declined(DeclineCode.FORM, "no integer constants")


def _lift(draft: Draft, constant: Constant) -> Draft | Declined:
    facts = draft.facts
    # Offsets have moved since an earlier constant was lifted.
    alike = (c for c in constants(facts) if replace(c, literal=None) == replace(constant, literal=None))
    current = next(alike, None)
    if current is None:
        return Declined(DeclineCode.FORM, "it is no longer a plain constant")
    ties = _ties(draft, current)
    if isinstance(ties, Declined):
        return ties
    axes = ties.block
    name = BLOCK if axes == {"x"} else f"WS_{re.sub(r'^WS_', '', current.name).upper()}"
    if name in draft.names() or re.search(rf"\b{name}\b", draft.kernel.text):
        return Declined(DeclineCode.NAME_TAKEN, f"the name {name} is taken")
    launch = _launch(draft.kernel.launch, current.value, name, ties)
    axes = frozenset("x") if ties.warps else axes
    outgrown = why_not_shared(facts, draft.kernel.launch, (AXES.index(a) for a in axes))
    if outgrown:
        return Declined(DeclineCode.RELIED_ON, outgrown)
    before, launch = draft.kernel.launch, with_shared_bytes(draft.kernel, launch)
    arguments = grown(draft.kernel, launch)
    place = current.literal
    values = _values(current.value, len(ties.block), draft.is_opencl, current.kind)
    tied = f", tied to block {', '.join(sorted(axes))}" if axes else ""
    constraints = (limit(f"{product_of(launch)} <= device.max_threads_per_block", MORE_THREADS),)
    return draft.changed(
        RuleChange(
            LiftConstants.name,
            f"{current.kind} {current.name} = {current.value}{tied}",
            edits=[] if place is None else [Edit(place.start_byte, place.end_byte, name)],
            launch=launch,
            arguments=arguments,
            entry=_entry(draft, current, name) if current.kind == "template" else None,
            parameters=(
                Parameter(
                    name=name,
                    values=values,
                    default=current.value,
                    usual=_usual(current.value, len(ties.block), values),
                    meaning=f"{current.name} of the kernel",
                ),
            ),
            constraints=((*constraints, *fits(arguments)) if axes else ()) + shared_fits(before, launch),
        )
    )


def _ties(draft: Draft, constant: Constant) -> _Ties | Declined:
    facts = draft.facts
    said = _meanings(facts, constant)
    if isinstance(said, Declined):
        return said
    grid, block, warps = (_axes(said, *kinds) for kinds in (_OF_GRID, _OF_BLOCK, ("warps.",)))
    text = str(constant.value)
    equal = {AXES[n] for n, e in enumerate(draft.kernel.launch.block) if e.text == text}
    if not block and equal and said & {"extent", "tree"}:
        unmeant = _why_not_the_block(facts, equal, grid)
        if unmeant is not None:
            return unmeant
        block = set(equal)
    if warps:
        return _of_warps(draft, constant, grid, block)
    if not (block or grid):
        if "step" not in said:
            return Declined(DeclineCode.RELIED_ON, "it may be part of what the kernel computes")
        if _by_itself(facts, constant):
            words = "what the kernel computes may depend on where its steps begin"
            return Declined(DeclineCode.RELIED_ON, words)
    if not block <= equal:
        words = f"the block's extent along {', '.join(sorted(block - equal))} is not {text} in the launch"
        return Declined(DeclineCode.LAUNCH, words)
    return _with_grid(draft, constant, grid, block)


def _axes(said: set[str], *kinds: str) -> set[str]:
    """Axes of the meanings of some kinds."""
    return {s[-1] for s in said if s.startswith(kinds)}


def _why_not_the_block(facts: Facts, equal: set[str], grid: set[str]) -> Declined | None:
    """The answer for a size that only happens to be the number of an extent of the block; None for others.

    Args:
        equal: axes of the block with that number.
        grid: axes of the grid that the size is bound to.
    """
    if len(equal) != 1 or grid:
        return Declined(DeclineCode.LAUNCH, "several extents of the block are the same number")
    if not _shared_by_thread(facts):
        words = "the block is the same number, and nothing shows whether that is meant"
        return Declined(DeclineCode.RELIED_ON, words)
    return None


def _of_warps(draft: Draft, constant: Constant, grid: set[str], block: set[str]) -> _Ties | Declined:
    """The ties of a number of warps, if the block may have any number of them."""
    launch = draft.kernel.launch
    if not launches_by_warps(draft.kernel.text, draft.kernel.backend):
        return Declined(DeclineCode.LAUNCH, "the width of a warp is the device's")
    if block or launch.block[0].text != str(WARP * constant.value) or draft.is_opencl:
        words = f"the block is not {WARP} * {constant.value} threads in the launch"
        return Declined(DeclineCode.LAUNCH, words)
    if any(e.text != "1" for e in launch.block[1:]) or not only_warps(draft.facts):
        words = "the kernel uses its thread index otherwise than by warp and lane"
        return Declined(DeclineCode.RELIED_ON, words)
    ties = _with_grid(draft, constant, grid, {"x"})
    return ties if isinstance(ties, Declined) else _Ties(ties.grid, frozenset(), warps=True)


def _by_itself(facts: Facts, constant: Constant) -> bool:
    """True if no inner loop covers a step, or if something is computed for each step."""
    found = uses(facts, constant)
    stepped = [loop for n in found if (loop := _loop_of(n, "update")) is not None]
    inner = [loop for n in found if (loop := _loop_of(n, "condition")) is not None]
    for loop in stepped:
        covering = [i for i in inner if i != loop and contains(loop, i)]
        if not covering or any(_gathers(facts, loop, i) for i in covering):
            return True
    return False


def _gathers(facts: Facts, loop: Node, inner: Node) -> bool:
    """True if an inner loop changes a local that each step of the outer one declares before it."""
    declared = (v for v in facts.source.variables if contains(loop, v.declaration) and not v.is_array)
    return any(v.declaration.end_byte <= inner.start_byte and facts.changes_in(v, inner) for v in declared)


def _loop_of(use: Node, field: str) -> Node | None:
    """The loop whose update or condition has a use."""
    for a in ancestors(use):
        if a.type == "for_statement":
            part = a.child_by_field_name(field)
            inside = part is not None and part.start_byte <= use.start_byte < part.end_byte
            return a if inside else None
    return None


def _meanings(facts: Facts, constant: Constant) -> set[str] | Declined:
    """Meanings of the uses of a constant, if all are sizes."""
    said: set[str] = set()
    for use in uses(facts, constant):
        what = meaning(facts, use)
        if what is None or (what in ("scale", "type") and constant.kind != "template"):
            around = facts.source.of(use.parent) if use.parent is not None else constant.name
            words = f"its use in {around[:60]!r} (line {use.start_point[0] + 1}) may be more than a size"
            return Declined(DeclineCode.RELIED_ON, words)
        said.add(what)
    return said


def _with_grid(draft: Draft, constant: Constant, grid: set[str], block: set[str]) -> _Ties | Declined:
    launch, text = draft.kernel.launch, str(constant.value)
    for axis in grid:
        n = AXES.index(axis)
        if n >= len(launch.grid) or not re.search(rf"ceil_div\(.*,\s*{text}\)$", launch.grid[n].text):
            return Declined(DeclineCode.LAUNCH, f"grid {axis} is not `ceil_div(..., {text})` in the launch")
    rest = [e.text for n, e in enumerate(launch.grid) if AXES[n] not in grid]
    rest += [e.text for n, e in enumerate(launch.block) if AXES[n] not in block]
    rest.append(launch.shared_bytes.text)
    local = draft.kernel.local_arguments
    if local and block:
        steep = why_not(draft.facts, constant.name, len(block))
        if steep:
            return Declined(DeclineCode.RELIED_ON, steep)
    else:
        rest += [e.text for a in local for e in a.shape]
    if any(re.search(rf"\b{text}\b", r) for r in rest):
        return Declined(DeclineCode.LAUNCH, f"the launch holds {text} elsewhere; name the parameter there")
    return _Ties(frozenset(grid), frozenset(block))


def _shared_by_thread(facts: Facts) -> bool:
    """True if some shared array has one element per thread: `shared[threadIdx.x]`."""
    shared = (a for a in facts.accesses(facts.source.body) if a.root is not None and a.root.is_shared)
    return any(a.index is not None and facts.coordinate(a.index) == "tid.x" for a in shared)


def _launch(launch: Launch, value: int, name: str, ties: _Ties) -> Launch:
    grid = [
        Expression(re.sub(rf"\b{value}\)$", f"{name})", e.text)) if AXES[n] in ties.grid else e
        for n, e in enumerate(launch.grid)
    ]
    block = [Expression(name) if AXES[n] in ties.block else e for n, e in enumerate(launch.block)]
    if ties.warps:
        block[0] = Expression(f"{WARP} * {name}")
    return launch.model_copy(update={"grid": tuple(grid), "block": tuple(block)})


def _entry(draft: Draft, constant: Constant, name: str) -> str:
    """The name expression with the parameter in place of the template argument."""
    entry = draft.kernel.entry
    head, tail = entry[: entry.index("<") + 1], entry[entry.index("<") + 1 :]
    parent = draft.source.kernel.parent
    listed = None if parent is None else parent.child_by_field_name("parameters")
    assert listed is not None
    position = next(
        n
        for n, c in enumerate(listed.named_children)
        if re.search(rf"\b{constant.name}(?:\s*=.*)?$", draft.source.of(c), re.S)
    )
    depth = count = start = 0
    for at, c in enumerate(tail):
        if depth == 0 and c in ",>":
            if count == position:
                return head + tail[:start] + f" {name}".lstrip() + tail[at:]
            count, start = count + 1, at + 1
        depth += (c in "<(") - (c in ">)")
    return entry


def _values(default: int, axes: int, opencl: bool, kind: str) -> tuple[int, ...]:
    if axes == 1:
        values = {n for n in (16, 32, 64, 128, 256, 512, 1024) if opencl or n >= 32}
    elif axes > 1:
        values = {4, 8, 16, 32}
    elif kind == "template" and default <= 16:
        values = {1, 2, 4, 8, 16}
    else:
        near = 1 << (default.bit_length() - 1)
        values = {n for n in (near // 4, near // 2, near, near * 2, near * 4) if n >= 1}
    return tuple(sorted(values | {default}))


def _usual(value: int, axes: int, values: tuple[int, ...]) -> int:
    """A block of 256 threads, and 16 x 16 of a tile; any other constant is what its author found usual."""
    wanted = {1: 256, 2: 16}.get(axes, value)
    return wanted if wanted in values else value
