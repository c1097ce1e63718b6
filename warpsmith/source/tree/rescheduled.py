"""A kernel's source under another schedule that its language allows, to show what relies on the usual one.

Work-items and groups run in reverse order (OpenCL), and pause between what they read and what they write to
the device's memory, so that an update without an atomic loses to another one. Values stay the same.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Node

from warpsmith.domain.device import Backend
from warpsmith.domain.source_text import nesting_problem
from warpsmith.source.tree.syntax_tree import Edit, Source, apply_edits, find, strip
from warpsmith.source.tree.work_limit import TooMuchWork, limited_work
from warpsmith.source.tree.written_out import written_out

MOST_WORK = 4_000_000
"""Limit on the steps of reading a source."""

_REVERSED = """\
#define get_local_id(d) (get_local_size(d) - 1 - get_local_id(d))
#define get_group_id(d) (get_num_groups(d) - 1 - get_group_id(d))
#define get_global_id(d) (get_global_offset(d) + get_group_id(d) * get_local_size(d) + get_local_id(d))
#define get_local_linear_id() \\
  ((get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0))
#define get_global_linear_id() \\
  (((get_global_id(2) - get_global_offset(2)) * get_global_size(1) \\
    + get_global_id(1) - get_global_offset(1)) * get_global_size(0) \\
   + get_global_id(0) - get_global_offset(0))
"""
_PAUSE = """\
static void ws_pause(int turns) {{{fence}
  if ({x} + {y} + {z} == 0)
    for (volatile int i = 0; i < turns; ++i) {{}}{fence}
}}
"""
"""Pause in the first group, which others overtake."""
_FENCE = ' asm volatile("" ::: "memory");'
"""Keeps reads before a pause and writes behind it where a value cannot be volatile."""
_ORDERED = re.compile(r"\bsub_group|\bget_(?:\w*sub_group|enqueued)\w*")
"""Words of code in which the order of work-items means something, or for which macros are missing."""
_STORES = re.compile(
    r"(?:__)?atom(?!\w*(?:[cC]mp|[cC]ompare))\w*(?:store|xchg|[eE]xch)\w*|(?P<vector>vstore\w+)"
)
_WORDS = {
    True: ("({{ volatile __auto_type ws_value = {}; ws_pause({}); {}; }})", ""),
    False: ("[&]{{ auto ws_value = {}; ws_pause({}); {}; }}()", "return "),
}
"""An expression with a value, a pause and its last statement, and the word before what it gives; by whether
the language is OpenCL C. NVRTC has no statements in expressions, and clang's OpenCL C no lambdas."""


def rescheduled(
    text: str, backend: Backend, entry: str, options: Iterable[str], turns: Sequence[int], *, reverse: bool
) -> str:
    """The text with pauses where memory is written that is read as well.

    Args:
        turns: of an empty loop before each write, by the place of the kernel's argument that is written;
            the fewest where it is not known.
        reverse: True: items and groups are in reverse order, if the language is OpenCL's.

    Raises:
        LookupError: the entry is not defined exactly once, or the text is too long to be read.
    """
    problem = nesting_problem(text)
    if problem:
        raise LookupError(problem)
    try:
        with limited_work(MOST_WORK):
            source = Source(text, backend, entry)
            source = Source(written_out(source, options, ()).text, backend, entry)
            edits = list(_Pauses(source, turns).edits())
    except TooMuchWork:
        raise LookupError("the source is too long to be read") from None
    is_opencl = backend.language.is_opencl_c
    place = "get_group_id({})" if is_opencl else "blockIdx.{}"
    axes = {a: place.format(n if is_opencl else a) for n, a in enumerate("xyz")}
    fence = "" if is_opencl else _FENCE
    before = ("" if is_opencl else "__device__ ") + _PAUSE.format(**axes, fence=fence)
    if reverse and is_opencl and not _ORDERED.search(text):
        before += _REVERSED
    return f"{before}#line 1\n{apply_edits(source.text, edits)}"


class _Pauses:
    """Edits that put a pause between what is read and a write to the device's memory."""

    def __init__(self, source: Source, turns: Sequence[int]) -> None:
        self._source = source
        self._form, self._gives = _WORDS[source.backend.language.is_opencl_c]
        taken = (v.name for v in source.variables if v.is_parameter and v.scope == source.kernel)
        self._turns = dict(zip(taken, turns, strict=False))
        self._fewest = min((t for t in turns if t), default=1)
        self._read = {source.of(n) for n in self._reads()}

    def _reads(self) -> Iterator[Node]:
        """Identifiers that are neither parameters nor where the target of a plain assignment begins."""
        assigned = (n.child_by_field_name("left") for n in self._found("assignment_expression"))
        others = {self._root(n).id for n in assigned if n is not None and _is_plain(n)}
        others |= {n.id for function in self._functions for n in _parameters(function)}
        return (n for n in self._found("identifier") if n.id not in others)

    @property
    def _functions(self) -> list[Node]:
        return [f for some in self._source.functions.values() for f in some]

    def _found(self, kind: str) -> list[Node]:
        return [n for function in self._functions for n in find(function, kind)]

    def edits(self) -> Iterator[Edit]:
        """The edits, which do not overlap."""
        for node in self._found("assignment_expression"):
            yield from self._assignment(node)
        for node in self._found("update_expression"):
            yield from self._update(node)
        for node in self._found("call_expression"):
            called, given = _STORES.fullmatch(self._source.callee(node)), self._source.arguments(node)
            if called is not None and len(given) > 1:
                place, value = (given[-1], given[0]) if called["vector"] else (given[0], given[1])
                yield from self._around(value, self._pause(place))

    def _around(self, value: Node, turns: int) -> Iterator[Edit]:
        if turns:
            begin, end = self._paused("(\0)", turns)
            yield Edit(value.start_byte, value.start_byte, begin)
            yield Edit(value.end_byte, value.end_byte, end)

    def _paused(self, value: str, turns: int) -> list[str]:
        """Text before and behind the place of a value."""
        return self._form.format(value, turns, f"{self._gives}ws_value").split("\0")

    def _assignment(self, node: Node) -> Iterator[Edit]:
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if target is None or value is None or operator is None or not _is_place(target):
            return
        sign, turns = self._source.of(operator), self._pause(target)
        if sign == "=":
            yield from self._around(value, turns)
        elif turns and _is_repeatable(target):
            begin, end = self._paused(f"({self._source.of(target)}) {sign[:-1]} (\0)", turns)
            yield Edit(operator.start_byte, operator.end_byte, f"= {begin}")
            yield Edit(value.end_byte, value.end_byte, end)

    def _update(self, node: Node) -> Iterator[Edit]:
        target, operator = node.child_by_field_name("argument"), node.child_by_field_name("operator")
        if target is None or operator is None or not _is_place(target) or not _is_repeatable(target):
            return
        turns = self._pause(target)
        if turns:
            written, sign = self._source.of(target), self._source.of(operator)[0]
            changed, gives = f"{written} = ws_value {sign} 1", self._gives
            is_new = operator.start_byte < target.start_byte
            last = f"{gives}{changed}" if is_new else f"{changed}; {gives}ws_value"
            yield Edit(node.start_byte, node.end_byte, self._form.format(written, turns, last))

    def _pause(self, place: Node) -> int:
        """Turns before a write to a place; none for what no other group sees, or what is never read."""
        name, seen = self._source.of(self._root(place)), set[str]()
        while name not in seen:
            seen.add(name)
            variable = self._source.lookup(name, place)
            if variable is None or name in self._turns:
                break
            if variable.is_shared or (variable.is_array and not variable.is_parameter):
                return 0
            known = [] if variable.init is None else find(variable.init, "identifier")
            name = next((self._source.of(n) for n in known), name)
        return self._turns.get(name, self._fewest) if seen & self._read else 0

    def _root(self, place: Node) -> Node:
        """The name at which a place in memory begins."""
        inner = strip(place)
        while inner.type != "identifier":
            fields = ("argument", "left", "value")
            following = next((c for f in fields if (c := inner.child_by_field_name(f)) is not None), None)
            if following is None:
                break
            inner = strip(following)
        return inner


def _parameters(function: Node) -> list[Node]:
    """Identifiers of a function's head."""
    head = function.child_by_field_name("declarator")
    return [] if head is None else find(head, "identifier")


def _is_plain(target: Node) -> bool:
    """True for the target of `=`, which is not read."""
    operator = None if target.parent is None else target.parent.child_by_field_name("operator")
    return operator is not None and operator.type == "="


def _is_place(target: Node) -> bool:
    """True for what a pointer leads to."""
    inner = strip(target)
    while inner.type == "field_expression" and not any(c.type == "->" for c in inner.children):
        inner = strip(inner.child_by_field_name("argument") or inner.children[0])
    return inner.type in ("subscript_expression", "pointer_expression", "field_expression")


def _is_repeatable(target: Node) -> bool:
    """True if evaluating an expression again changes nothing."""
    return not find(target, "call_expression", "update_expression", "assignment_expression")
