"""Variables that texts declare outside of calls, and which of them are constants. Linear in the texts.

The texts may be written to mislead. All branches of the preprocessor are read, and a variable is a constant
only if nothing is seen that may declare it otherwise.
"""

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, takewhile

from warpsmith.source.declarations.statements import (
    ANGLES,
    BRACES,
    BRACKETS,
    CLASS_BODY,
    DIRECTIVE,
    PARENTHESES,
    Item,
    Statement,
    StatementReader,
    StatementScope,
)
from warpsmith.source.lexing.tokens import Token, blank, tokenise
from warpsmith.source.macros.declaring_macros import DeclaringMacros

_STORED = frozenset({"__device__", "__managed__", "static", "extern", "inline", "thread_local", "__thread"})
"""Words of variables that outlive a call, in whatever scope."""
_CONSTANT = frozenset({"const", "constexpr", "__constant__", "__constant", "constant"})
_ELSEWHERE = frozenset({"__shared__", "__local", "local"})
"""Words of variables in the memory of a block."""
_OF_OPENCL = frozenset({"constant", "local"})
"""Words that CUDA leaves to the source."""
_TYPES = frozenset(
    "auto bool char double float half int long short signed unsigned void volatile const constexpr "  # noqa: SIM905
    "constinit typename struct class union enum register __restrict__ __global global".split()
)
_NO_DECLARATIONS = frozenset(
    "using typedef return goto static_assert _Static_assert friend delete throw break continue".split()  # noqa: SIM905
)
_TRAILING = frozenset({"const", "volatile", "noexcept", "override", "final"})
_SIGNS = frozenset({"::", "*", "&", "&&", PARENTHESES, BRACKETS, ANGLES})
"""Signs and brackets of declarators that are read."""
_REFERENCES = frozenset({"&", "&&"})
_BINDING = _REFERENCES | {"auto"}
"""Tokens that stand before the brackets around the names of a structured binding."""
_TELLING = _STORED | _CONSTANT | _ELSEWHERE | _NO_DECLARATIONS | _TYPES | {"template", "namespace", "mutable"}

_GLUED = re.compile(r"(?<=[\w/*%:<'\"\\?])(?:\\[ \t\f\v]*\r?\n)+(?=\S)")
"""A line that goes on in the middle of a word or sign."""
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_DIGRAPH = re.compile(r"<%|%>|<:(?!:)|(?<!:):>|%:")


@dataclass(frozen=True)
class DeclaredVariables:
    """Names as the texts have them, without their namespaces."""

    names: frozenset[str]
    """Variables that outlive a call, and other names that may be such."""
    constants: frozenset[str]
    """Names whose every declaration is one of a constant; empty unless `are_all_known`."""
    seen_as_constants: frozenset[str]
    """Names whose every declaration that is seen is one of a constant."""
    are_all_known: bool
    """False if the texts may declare others as well, by words that are put together of parts."""


@lru_cache(maxsize=64)
def declared_variables(
    texts: tuple[str, ...], definitions: tuple[str, ...] = (), *, is_opencl: bool = False
) -> DeclaredVariables:
    """Read a kernel's text and its other files.

    Args:
        texts: the kernel's own first.
        definitions: macros of a configuration, as they stand behind `#define`.
    """
    tokens = [tokenise(text).items for text in texts]
    macros = DeclaringMacros(
        (*definitions, *(t.rest for text in tokens for t in text if _defines(t))), _STORED, _TELLING
    )
    reader = _DeclarationCollector(macros, is_opencl=is_opencl)
    is_readable = not macros.names & _TELLING and not any(map(_has_hidden_words, texts))
    for n, text in enumerate(tokens):
        statements = StatementReader(reader.add, macros.expansions())
        statements.read(text)
        reader.end_text(text, is_balanced=statements.is_balanced)
        # What another text includes may be the beginning of its next statement.
        is_readable = is_readable and (n == 0 or statements.is_whole)
    return reader.result(is_readable=is_readable)


def _defines(token: Token) -> bool:
    return token.kind == "directive" and token.text == "define"


def _has_hidden_words(text: str) -> bool:
    return bool(_GLUED.search(text) or _TRIGRAPH.search(text) or _DIGRAPH.search(blank(text)))


class _DeclarationCollector:
    """Gathers the variables that the statements of texts declare, with macros that may declare more."""

    def __init__(self, macros: DeclaringMacros, *, is_opencl: bool) -> None:
        self._macros = macros
        self._own_words = frozenset[str]() if is_opencl else _OF_OPENCL
        self._constant: set[str] = set()
        self._changing: set[str] = set()
        self._automatic: set[str] = set()
        self._used_macros: set[str] = set(macros.declaring)
        self._arguments: list[tuple[int, int]] = []
        """Ranges of tokens that are arguments of macros which may declare what they are given."""
        self._are_all_known = True
        self._has_mutable = False

    def add(self, statement: Statement) -> None:
        """Read a statement."""
        items = _without_template(statement.items)
        words = {i.text for i in items if i.is_word}
        self._has_mutable = self._has_mutable or _has_mutable_member(items)
        is_stored = not words.isdisjoint(_STORED)
        counts = is_stored or (statement.scope is StatementScope.FILE and not statement.in_parentheses)
        self._add_macros(items, counts=counts)
        if statement.has_body or not items or items[0].text in _NO_DECLARATIONS:
            return
        if words & (_ELSEWHERE - self._own_words) or (statement.in_parentheses and not is_stored):
            return
        if counts:
            self._are_all_known = self._are_all_known and not _binds_names(items)
            self._declare(items, self._changing, self._constant)
        elif len(words) > 1:
            self._declare(items, self._automatic, self._automatic)

    def end_text(self, tokens: Sequence[Token], *, is_balanced: bool) -> None:
        """Add the arguments of declaring macros, when all statements of a text are known."""
        if not is_balanced:
            self._changing |= self._automatic
        changes = [0] * (len(tokens) + 1)
        for start, end in self._arguments:
            changes[start] += 1
            changes[end] -= 1
        depths = accumulate(changes)
        self._changing |= {t.text for t, d in zip(tokens, depths, strict=False) if d and t.kind == "name"}
        self._arguments, self._automatic = [], set()

    def result(self, *, is_readable: bool) -> DeclaredVariables:
        """Variables that all texts together declare."""
        names = self._constant | self._changing
        # A declared name that is a macro is another name.
        words, pastes = self._macros.reached(self._used_macros | (names & self._macros.names))
        self._changing |= words
        are_all_known = is_readable and self._are_all_known and not pastes
        seen = frozenset() if self._has_mutable else frozenset(self._constant - self._changing)
        constants = seen if are_all_known else frozenset()
        return DeclaredVariables(frozenset(names | words), constants, seen, are_all_known)

    def _add_macros(self, items: Sequence[Item], *, counts: bool) -> None:
        for n, item in enumerate(items):
            if item.is_word and item.text in self._macros.names:
                if counts:
                    self._used_macros.add(item.text)
                if counts or item.text in self._macros.declaring:
                    following = items[n + 1] if n + 1 < len(items) else item
                    if following.text == PARENTHESES:
                        self._arguments.append((following.start, following.end))

    def _declare(self, items: Sequence[Item], changing: set[str], constant: set[str]) -> None:
        in_doubt = any(i.text in (DIRECTIVE, CLASS_BODY) for i in items)
        of_all = frozenset[str]()
        for n, part in enumerate(_split(items)):
            head = list(takewhile(lambda i: i.text not in ("=", BRACES), part))
            # Functions' parameters may look like a declarator in brackets.
            changing |= {i.declarator for i in head if i.declarator}
            at = _place_of_name(head, is_first=n == 0)
            if in_doubt or at is None or any(map(self._is_unclear, head)):
                changing |= {i.text for i in head if i.is_word}
                in_doubt = in_doubt or n == 0
                continue
            if n == 0:
                of_all = frozenset(_words_before_signs(head[:at])) - self._own_words
            (constant if self._is_constant(of_all, head[:at]) else changing).add(head[at].text)
            # A comma behind a sign of comparison may be one between arguments of a template.
            in_doubt = any(i.text == "<" for i in part)

    def _is_unclear(self, item: Item) -> bool:
        if item.is_word:
            return self._macros.is_opaque(item.text)
        return item.text not in _SIGNS and not item.is_string

    def _is_constant(self, of_all: Set[str], before: Sequence[Item]) -> bool:
        """True for a declarator of a constant.

        Args:
            of_all: words that hold for all declarators of the statement.
            before: what stands before the declarator's name.
        """
        if any(i.text in _REFERENCES for i in before):
            return False
        if "constexpr" in of_all or "__constant__" in of_all:
            return True
        last = max((k for k, i in enumerate(before) if i.text == "*"), default=None)
        if last is not None:
            return any(i.text == "const" for i in before[last:])
        return not of_all.isdisjoint(_CONSTANT)


def _words_before_signs(items: Sequence[Item]) -> Iterator[str]:
    """Words of a declaration's beginning, without those of its first declarator."""
    before = takewhile(lambda i: i.text != "*" and i.text not in _REFERENCES, items)
    return (i.text for i in before if i.is_word)


def _has_mutable_member(items: Sequence[Item]) -> bool:
    """True for a `mutable` that is not that of a lambda, which stands behind parameters."""
    lambdas = sum(a.text == PARENTHESES and b.text == "mutable" for a, b in pairwise(items))
    return lambdas < sum(i.text == "mutable" for i in items)


def _binds_names(items: Sequence[Item]) -> bool:
    return any(a.text in _BINDING and b.text == BRACKETS for a, b in pairwise(items))


def _without_template(items: Sequence[Item]) -> Sequence[Item]:
    at = 0
    while at + 1 < len(items) and items[at].text == "template" and items[at + 1].text == ANGLES:
        at += 2
    return items[at:]


def _split(items: Sequence[Item]) -> list[list[Item]]:
    """The declarators of a statement, the first with what stands before all of them."""
    parts: list[list[Item]] = [[]]
    for item in items:
        if item.text == ",":
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _place_of_name(head: Sequence[Item], *, is_first: bool) -> int | None:
    """Index of the declared name; None if the declarator is of a kind that is not read."""
    words = _words_up_to_name(head)
    if len(words) < 1 + is_first or head[words[-1]].text in _TELLING:
        return None
    if any(i.text == "*" or i.text in _REFERENCES for i in head[words[-1] :]):
        return None
    return words[-1]


def _words_up_to_name(head: Sequence[Item]) -> list[int]:
    """Indices of a declarator's words, the name last; empty if parentheses stand in the way of reading."""
    words = [k for k, i in enumerate(head) if i.is_word]
    group = next((k for k, i in enumerate(head) if i.text == PARENTHESES), None)
    if group is None:
        return words
    before = [k for k in words if k < group]
    if any(head[k].text not in _TRAILING for k in words[len(before) :]):
        return []
    return before if before and all(i.text == ANGLES for i in head[before[-1] + 1 : group]) else []
