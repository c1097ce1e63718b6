"""Loops of a few rounds inside an iteration of a strided loop, whose loads can be made before it."""

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpsmith.extensions.rules.analysis.kernel_facts import Access, Facts
from warpsmith.extensions.rules.analysis.loops.counted_loops import CountedLoop, counted, ends_early
from warpsmith.extensions.rules.analysis.loops.for_loops import unroll_before
from warpsmith.extensions.rules.analysis.threads.thread_teams import constant
from warpsmith.source.tree.syntax_tree import LOOPS, Edit, Source, ancestors

_MOST = 16
"""Rounds whose loads a thread holds in registers at most."""


@dataclass(frozen=True)
class Rounds:
    """A loop with the same few rounds in every iteration."""

    loop: CountedLoop
    first: int
    count: int

    @property
    def numbers(self) -> range:
        """Values of its counter."""
        return range(self.first, self.first + self.count)

    def head(self, source: Source) -> str:
        """`for (...)` of the loop."""
        return source.between(self.loop.node.start_byte, self.loop.body.start_byte)

    def place(self) -> str:
        """Number of the round, from 0."""
        name = self.loop.variable.name
        return f"{name} - {self.first}" if self.first else name

    def in_round(self, text: str, number: int) -> str:
        """A text with the counter's value."""
        return re.sub(rf"(?<![\w.>]){self.loop.variable.name}\b", str(number), text)

    def deciding(self, index: str) -> range:
        """Rounds that say of all whether their addresses are aligned.

        Two, if the index is linear in the counter; else all."""
        uses = re.findall(rf"(?<![\w.>]){self.loop.variable.name}\b", index)
        linear = len(uses) == 1 and re.search(r"[-/%?&|<>^\[]|\w\s*\(", index) is None
        return self.numbers[:2] if linear else self.numbers

    def unrolled(self, source: Source, base: int) -> list[Edit]:
        """The pragma that keeps what the rounds load in registers, in a text that begins at byte `base`."""
        if _pragma(source, self.loop.node):
            return []
        at = self.loop.node.start_byte - base
        return [Edit(at, at, "\n#pragma unroll\n")]


def rounds_of(facts: Facts, outer: Node, a: Access) -> Rounds | None:
    """The loop inside `outer` whose every round makes an access; None if it has not a few known rounds."""
    around = next((n for n in ancestors(a.node) if n.type in LOOPS), None)
    if around is None or around == outer or facts.is_opencl:
        return None
    loop = counted(facts, around)
    if loop is None or loop.inclusive or ends_early(loop) or loop.variable.declaration.parent != around:
        return None
    if _pragma(facts.source, around) not in ("", "#pragmaunroll"):
        return None
    first, end = constant(facts, loop.start), constant(facts, loop.bound)
    if first is None or end is None or not 1 < end - first <= _MOST:
        return None
    return Rounds(loop, first, end - first)


def _pragma(source: Source, loop: Node) -> str:
    """The unroll pragma before a loop, without blanks; empty if there is none."""
    pragma = unroll_before(source, loop)
    return "" if pragma is None else re.sub(r"\s+", "", source.of(pragma))
