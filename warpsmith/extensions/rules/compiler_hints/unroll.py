"""Unroll factors of innermost loops."""

import re

from tree_sitter import Node

from warpsmith.domain.templates.declined_rule import DeclineCode
from warpsmith.domain.templates.space import Parameter
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule, RuleChange
from warpsmith.extensions.rules.analysis.kernel_facts import Facts
from warpsmith.source.tree.syntax_tree import LOOPS, Edit, find, walk

PARAMETER = "WS_UNROLL"
# nvcc's preprocessor does not expand macros in pragmas, so the count must be a constant.
_COUNT = f"#if {PARAMETER} > 0\nconstexpr int ws_unroll = {PARAMETER};\n#endif\n"


class Unroll(Rule):
    """Adds `#pragma unroll` to counted loops that have none, if every loop inside has one. It never changes
    results."""

    name = "unroll"
    keeps_accesses = True
    keeps_places = True
    needs_no_macro = True

    def apply(self, draft: Draft) -> Draft | Declined:
        """See `Rule`."""
        loops = [n for n in find(draft.source.body, "for_statement") if _fits(draft.facts, n)]
        if not loops:
            return Declined(DeclineCode.FORM, "no innermost counted loop without an unroll pragma")
        count = PARAMETER if draft.is_opencl else "ws_unroll"
        pragma = f"\n#if {PARAMETER} > 0\n#pragma unroll {count}\n#endif\n"
        return draft.changed(
            RuleChange(
                self.name,
                f"{len(loops)} loop(s)",
                edits=[Edit(n.start_byte, n.start_byte, pragma) for n in loops],
                prologue="" if draft.is_opencl else _COUNT,
                parameters=(
                    Parameter(
                        name=PARAMETER,
                        values=(0, 1, 2, 4),
                        usual=4,  # four loads in flight, at few registers more
                        meaning="0: as the compiler sees fit",
                    ),
                ),
            )
        )


def _fits(facts: Facts, loop: Node) -> bool:
    source = facts.source
    body, update = loop.child_by_field_name("body"), loop.child_by_field_name("update")
    if body is None or update is None or _has_pragma(facts, loop) or _is_lane_loop(facts, loop):
        return False
    if any(not (_is_lane_loop(facts, n) or _has_pragma(facts, n)) for n in find(body, *LOOPS)):
        return False
    if any(c for c in find(body, "call_expression") if source.callee(c) in ("__syncthreads", "barrier")):
        return False
    return update.type == "update_expression" or "+=" in source.of(update)


def _has_pragma(facts: Facts, loop: Node) -> bool:
    before = facts.source.data[: loop.start_byte].rstrip().rsplit(b"\n", 1)[-1]
    return b"#pragma" in before


def _is_lane_loop(facts: Facts, loop: Node) -> bool:
    init = loop.child_by_field_name("initializer")
    return init is not None and any(re.match(r"ws_(?:lane|item)", facts.source.of(n)) for n in walk(init))
