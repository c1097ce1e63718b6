"""Several short rows per block, side by side along the block's second axis."""

from dataclasses import replace

from tree_sitter import Node

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernels.launch import Launch
from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.errors import ExpressionError
from warpsmith.extensions.rules.analysis.draft import MORE_THREADS, Declined, Draft, Rule, RuleChange, limit
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.extensions.rules.analysis.loops.strided_loops import NO_ROW, StridedLoop, strided_loops
from warpsmith.source.tree.syntax_tree import Edit, find

PARAMETER = "WS_ROWS"
LONG_ROW = 1024
"""Elements above which a single row keeps a block busy."""
NARROW = (8, 16)


class RowsPerBlock(Rule):
    """Gives a block a second axis, along which it processes neighbouring rows.

    Proven: threads of a block share nothing, so the grouping of rows into blocks does not matter; the kernel
    itself reads the row as the block's index; the second axis is free.
    """

    name = "rows_per_block"

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        facts, launch = draft.facts, draft.kernel.launch
        loops = strided_loops(facts)
        obstacle = _why_not(facts, launch, loops) or _long_rows(draft, loops)
        if obstacle is not None:
            return obstacle
        rows = _reads_of_row(facts, facts.source.body)
        place = "get_local_id(1)" if draft.is_opencl else "threadIdx.y"
        edits = [
            Edit(n.start_byte, n.end_byte, f"({facts.source.of(n)} * {PARAMETER} + {place})") for n in rows
        ]
        count, threads = launch.grid[0].text, launch.block[0].text
        changed = launch.model_copy(
            update={
                "grid": (Expression(f"ceil_div({count}, {PARAMETER})"), *launch.grid[1:]),
                "block": (launch.block[0], Expression(PARAMETER)),
            }
        )
        return _with_narrow_blocks(draft, threads).changed(
            RuleChange(
                self.name,
                "along the block's y",
                edits=edits,
                launch=changed,
                parameters=(
                    Parameter(
                        name=PARAMETER,
                        values=(1, 2, 4, 8, 16),
                        usual=2,  # the usual 256 threads of a row twice still leave room for two blocks
                        meaning="rows of a block",
                    ),
                ),
                constraints=(
                    limit(f"({count}) % {PARAMETER} == 0", "every block has all of its rows"),
                    limit(f"({threads}) * {PARAMETER} <= device.max_threads_per_block", MORE_THREADS),
                ),
            )
        )


def _with_narrow_blocks(draft: Draft, extent: str) -> Draft:
    """Add block sizes below a warp per row, which suffice if several rows fill a block."""
    parameters = tuple(
        p.model_copy(update={"values": tuple(sorted({*NARROW, *p.values}))}) if p.name == extent else p
        for p in draft.parameters
    )
    return replace(draft, parameters=parameters)


def _reads_of_row(facts: Facts, node: Node) -> list[Node]:
    return [n for n in find(node, "field_expression", "call_expression") if facts.coordinate(n) == "bid.x"]


def _why_not(facts: Facts, launch: Launch, loops: list[StridedLoop]) -> Declined | None:
    source = facts.source
    if not loops:
        return Declined(DeclineCode.FORM, NO_ROW)
    unsafe = facts.unsafe(source.body, in_order=True)
    if unsafe:
        return Declined(DeclineCode.DEPENDENCE, f"rows would not be independent: {unsafe}")
    shared = [v.name for v in source.variables if v.is_shared]
    if shared:
        words = f"shared memory ({', '.join(shared)}) ties the threads of a block together"
        return Declined(DeclineCode.DEPENDENCE, words)
    if any(e.text != "1" for e in launch.block[1:]):
        return Declined(DeclineCode.LAUNCH, "the block has more than one axis")
    misread = _misread(facts)
    return Declined(DeclineCode.FORM, misread) if misread else None


def _misread(facts: Facts) -> str:
    """The reason why a kernel reads more places than its block's index, or not that; else empty."""
    if any(facts.uses(kind, axis) for kind in ("tid", "bdim") for axis in "yz"):
        return "the kernel uses the block's other axes"
    if any(facts.uses(kind) for kind in ("gid", "gdim", "gsize")):
        return "the kernel reads more of the grid than its block's index"
    if not _reads_of_row(facts, facts.source.body):
        return "the kernel does not read its block's index"
    called = (f for f in facts.source.reachable if f != facts.source.kernel)
    if any(_reads_of_row(facts, function) for function in called):
        return "a function that the kernel calls reads the block's index"
    return ""


def _long_rows(draft: Draft, loops: list[StridedLoop]) -> Declined | None:
    """The reason to decline if rows are long: a long row fills a block, and another parameter would only
    widen the search."""
    values = {a.name: a.value for a in draft.job.kernel.arguments if a.value is not None}
    for loop in loops:
        text = draft.source.of(loop.bound)
        bound = values.get(text)
        if bound is None:
            words = f"how long a row is, `{text}`, is no argument of the kernel"
            return Declined(DeclineCode.UNREADABLE, words)
        try:
            lengths = [bound.evaluate({**w.scope(), **draft.values()}) for w in draft.job.workloads]
        except ExpressionError:
            return Declined(DeclineCode.UNREADABLE, "how long a row is depends on the device")
        if not any(isinstance(n, int | float) and n < LONG_ROW for n in lengths):
            return Declined(DeclineCode.NO_GAIN, f"every row has {LONG_ROW} elements or more")
    return None
