"""The body of a kernel with a team of threads per row."""

from dataclasses import dataclass, field

from tree_sitter import Node

from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.analysis.indices.guarded_element import Element, reached, statements
from warpsmith.rewrite.analysis.kernel_facts import AXES, Access, Facts
from warpsmith.rewrite.analysis.language_words import Words, text_of
from warpsmith.rewrite.analysis.loops.counted_loops import CountedLoop, counted, counter_is_free, ends_early
from warpsmith.rewrite.analysis.loops.independent_iterations import separate_writes
from warpsmith.rewrite.analysis.loops.reductions import Reduction, reductions
from warpsmith.rewrite.analysis.loops.strided_loops import changed_variables
from warpsmith.rewrite.analysis.values.uniform_values import names_in, uniform_text
from warpsmith.rewrite.bodies.staged_operands import clamped, is_unit
from warpsmith.rewrite.source.syntax_tree import Variable, find

TEAM = "WS_TEAM"


class _CannotShare(Exception):
    """A statement that a team cannot run; the message says why."""


@dataclass
class _Since:
    """Buffers accessed since the last barrier, by name."""

    by_one: set[str] = field(default_factory=set)
    by_team: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    def clear(self) -> None:
        for names in (self.by_one, self.by_team, self.read):
            names.clear()


@dataclass
class TeamText:
    """Writes the body. If there is none, `reason` says why."""

    draft: Draft
    element: Element
    reason: str = ""
    shared: int = 0
    """Number of loops that a team shares."""
    near: bool = True
    """True if neighbouring threads take neighbouring iterations instead of neighbouring rows."""
    kinds: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    """Buffers that every thread of a team reads."""
    since: _Since = field(default_factory=_Since)

    @property
    def handed(self) -> frozenset[str]:
        """Buffers through which threads of a team may pass values to each other."""
        return frozenset(self.written & self.read)

    def body(self) -> str | None:
        """The statements between the kernel's braces."""
        facts, words = self.draft.facts, Words(self.draft.is_opencl)
        try:
            inner = self._statements(list(self.element.inner))
        except _CannotShare as exc:
            self.reason = str(exc)
            return None
        if not self.shared:
            self.reason = self.reason or "no loop that counts by one and has independent iterations"
            return None
        restricted = [v.name for v in _restricted(self.draft) if v.name in self.handed]
        if restricted:
            self.reason = f"{restricted[0]} is restrict, and threads would hand values over through it"
            return None
        inside = [f"ws_own_{p.axis} == ws_at_{p.axis}" for p in self.element.places if p.lows or p.highs]
        lines = [
            *self._coordinates(words),
            f"{words.fresh}int ws_in = {' && '.join(inside) or '1'};",
            f"if ({' && '.join([*self.element.uniform, *reached(self.element.places)]) or '1'}) {{",
            *self.element.setup_text(facts),
            *inner,
            "}",
        ]
        return "\n".join(lines)

    def _coordinates(self, words: Words) -> list[str]:
        """Declarations of what the threads share, and of the element that a thread has along each axis."""
        block = [e.text for e in self.draft.kernel.launch.block]
        size = " * ".join(f"({e})" for e in block)
        lines = [f"{words.shared} {kind} ws_pool_{n}[{size}];" for n, kind in enumerate(self.kinds)]
        axes = AXES[: len(block)]
        thread = words.thread(axes[-1])
        for axis in reversed(axes[:-1]):
            thread = f"({thread}) * {words.threads(axis)} + {words.thread(axis)}"
        x = words.thread("x")
        rows = f"({words.threads('x')} / {TEAM})"
        lane, row = (f"{x} % {TEAM}", f"{x} / {TEAM}") if self.near else (f"{x} / {rows}", f"{x} % {rows}")
        lines += [
            f"const int ws_me = {thread};",
            f"const int ws_lane = {lane};",
            f"const int ws_apart = {'1' if self.near else rows};",
        ]
        for p in self.element.places:
            extent = rows if p.axis == "x" else words.threads(p.axis)
            own = row if p.axis == "x" else words.thread(p.axis)
            lines += [
                f"const {p.kind} ws_first_{p.axis} = {words.block(p.axis)} * {extent}{p.offset};",
                f"const {p.kind} ws_own_{p.axis} = ws_first_{p.axis} + {own};",
                f"const {p.kind} ws_at_{p.axis} = {clamped(p, f'ws_own_{p.axis}', whole=False)};",
            ]
        return lines

    def _statements(self, listed: list[Node]) -> list[str]:
        lines = []
        for statement in listed:
            lines += self._statement(statement)
        return lines

    def _statement(self, statement: Node) -> list[str]:
        facts = self.draft.facts
        loop = counted(facts, statement)
        if loop is not None:
            found = self._why_alone(loop)
            if isinstance(found, list):
                return self._shared(loop, found)
            self.reason = self.reason or f"loop at line {loop.line}: {found}"
            if self._has_shared(loop):
                return self._around(loop)
        if statement.type == "compound_statement":
            return ["{", *self._statements(statements(statement)), "}"]
        return self._alone(statement)

    def _why_alone(self, loop: CountedLoop) -> list[Reduction] | str:
        """The reductions of a shared loop; or the reason why one thread must run it."""
        facts = self.draft.facts
        if ends_early(loop):
            return "an iteration may end early"
        if not counter_is_free(facts, loop):
            return f"{loop.variable.name} is read after it"
        found = reductions(facts, loop)
        if isinstance(found, str):
            return found
        outer = [a for a in facts.accesses(loop.body) if a.root is not None and not loop.declares(a.root)]
        writes = [a for a in outer if a.writes]
        if any(a.root is not None and not a.root.is_parameter for a in writes):
            return "it fills an array of its thread"
        if not found and not writes:
            return "it changes nothing"
        return separate_writes(self.draft, loop, outer) or found

    def _has_shared(self, loop: CountedLoop) -> bool:
        facts = self.draft.facts
        inner = [counted(facts, n) for n in statements(loop.body)]
        if not any(p is not None and isinstance(self._why_alone(p), list) for p in inner):
            return False
        uniform = uniform_text(facts, loop.start) is not None and uniform_text(facts, loop.bound) is not None
        return uniform and not ends_early(loop)

    def _around(self, loop: CountedLoop) -> list[str]:
        """Code for a loop with the same iterations for every thread and shared loops inside."""
        source, barrier = self.draft.source, Words(self.draft.is_opencl).barrier
        head = source.between(loop.node.start_byte, loop.body.start_byte)
        self.since.clear()
        inner = self._statements(statements(loop.body))
        self.since.clear()
        return [barrier, f"{head}{{", *inner, barrier, "}"]

    def _shared(self, loop: CountedLoop, found: list[Reduction]) -> list[str]:
        facts, source = self.draft.facts, self.draft.source
        accesses = [a for a in facts.accesses(loop.node) if a.root is not None and not loop.declares(a.root)]
        reads, writes = _names(accesses)
        lines = self._wait(reads, writes, alone=False)
        self.since.read |= reads
        self.since.by_team |= writes
        self.shared += 1
        row = self.element.place("x")
        self.near &= row is None or not any(_walks_rows(facts, a, row.name, loop) for a in accesses)
        for r in found:
            if r.neutral:
                lines.append(f"if (ws_lane != 0) {r.variable.name} = ({r.variable.type_text}){r.neutral};")
        v = loop.variable
        kind = f"{v.type_text} " if loop.contains(v.declaration) else ""
        head = (
            f"for ({kind}{v.name} = ({source.of(loop.start)}) + ws_lane; {v.name} {loop.sign} "
            f"({source.of(loop.bound)}); {v.name} += {TEAM})"
        )
        text = source.of(loop.body)
        lines.append(f"{'if (ws_in) ' if writes else ''}{head} {text}")
        for r in found:
            lines += self._joined(r)
        return lines

    def _joined(self, r: Reduction) -> list[str]:
        """Code that combines the team's partial results in local memory; every thread then has the total."""
        barrier = Words(self.draft.is_opencl).barrier
        pool = self._pool(r.variable)
        mine, other = f"{pool}[ws_me]", f"{pool}[ws_me + ws_half * ws_apart]"
        join, names = r.joined(mine, other), [(pool, r.variable.name)]
        if r.place is not None:
            where = self._pool(r.place, taken=pool)
            names.append((where, r.place.name))
            here, there = f"{where}[ws_me]", f"{where}[ws_me + ws_half * ws_apart]"
            join = (
                f"if ({other} {r.sign} {mine} || ({other} == {mine} && {there} < {here})) "
                f"{{ {mine} = {other}; {here} = {there}; }}"
            )
        self.since.clear()
        return [
            *(f"{p}[ws_me] = {name};" for p, name in names),
            barrier,
            f"for (int ws_half = {TEAM} / 2; ws_half > 0; ws_half /= 2) {{",
            f"if (ws_lane < ws_half) {{ {join} }}",
            barrier,
            "}",
            *(f"{name} = {p}[ws_me - ws_lane * ws_apart];" for p, name in names),
            barrier,
        ]

    def _pool(self, v: Variable, taken: str = "") -> str:
        for n, kind in enumerate(self.kinds):
            if kind == v.type_text and f"ws_pool_{n}" != taken:
                return f"ws_pool_{n}"
        self.kinds.append(v.type_text)
        return f"ws_pool_{len(self.kinds) - 1}"

    def _alone(self, statement: Node) -> list[str]:
        """Code that all threads of a team execute alike, or only one of them if it writes memory."""
        facts, source = self.draft.facts, self.draft.source
        private = [v for v in facts.source.variables if not v.is_parameter]
        accesses = [a for a in facts.accesses(statement) if a.root not in private]
        reads, writes = _names(accesses)
        lines = self._wait(reads, writes, alone=bool(writes))
        if not writes:
            self.since.read |= reads
            return [*lines, text_of(source, statement)]
        self.since.by_one |= writes
        for v, _ in changed_variables(facts, statement):
            inside = statement.start_byte <= v.declaration.start_byte < statement.end_byte
            if not inside and not self._counts(statement, v):
                raise _CannotShare(f"line {statement.start_point[0] + 1} writes memory and changes {v.name}")
        return [*lines, f"if (ws_in && ws_lane == 0) {{ {text_of(source, statement)} }}"]

    def _counts(self, statement: Node, v: Variable) -> bool:
        loops = [counted(self.draft.facts, n) for n in find(statement, "for_statement")]
        return any(p is not None and p.variable == v and counter_is_free(self.draft.facts, p) for p in loops)

    def _wait(self, reads: set[str], writes: set[str], *, alone: bool) -> list[str]:
        """A barrier, if a thread would access what another one accessed since the last barrier."""
        since = self.since
        self.written |= writes
        if not alone:
            self.read |= reads
        met = (reads | writes) & since.by_team or writes & since.read
        if not alone:
            met = met or (reads | writes) & since.by_one
        if not met:
            return []
        since.clear()
        return [Words(self.draft.is_opencl).barrier]


def _names(accesses: list[Access]) -> tuple[set[str], set[str]]:
    reads = {a.root.name for a in accesses if a.reads and a.root is not None}
    return reads, {a.root.name for a in accesses if a.writes and a.root is not None}


def _walks_rows(facts: Facts, a: Access, row: str, loop: CountedLoop) -> bool:
    """True if neighbouring rows, not neighbouring iterations, are adjacent in memory."""
    if a.index is None or not is_unit(facts, a.index, row):
        return False
    return loop.variable.name in names_in(facts, a.index)


def _restricted(draft: Draft) -> list[Variable]:
    source = draft.source
    found = [v for v in source.variables if v.is_parameter and v.scope == source.kernel]
    return [v for v in found if "restrict" in source.of(v.declaration)]
