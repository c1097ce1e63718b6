"""String literals of host code, and the texts that host code puts together from them by name."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ITEM = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<define>^[ \t]*\#[ \t]*define[ \t]+(?P<defined>\w+))
    |(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\((?P<inner>.*?)(?:\)(?P=mark)"|\Z))
    |(?P<plain>(?:\b(?:u8|[uUL]))?"(?P<written>(?:\\.|[^"\\\n])*)")
    |(?P<character>'(?:\\.|[^'\\\n])')
    |(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)
    |(?P<sign>\+=|[<>=!]=|\\\n|[^\s\w])""",
    re.X | re.S | re.M,
)
_ENDS = frozenset(";{},")
_MAX_DEPTH = 16
"""Limit on the names that lead from one text to another."""
_MAX_CHARACTERS = 8 * 1024 * 1024
"""Limit on all texts of a file that are put together."""


@dataclass(frozen=True)
class HostString:
    """A text of host code: literals in a row, and names between them that are concatenated."""

    text: str
    """The whole, with the texts of the names that this file gives a text."""
    line: int
    """Line of the file, from 1, at which the first line of `text` would stand."""


@dataclass(frozen=True)
class _Name:
    name: str


@dataclass
class _Concatenation:
    """Operands of one concatenation; a name is kept as such until its text is known."""

    parts: list[str | _Name] = field(default_factory=list)
    line: int = 0
    """Line of the first literal; 0 without one."""
    first: int = 0
    """Index of the first literal among the parts."""


def host_strings(text: str) -> tuple[HostString, ...]:
    """Every text that a file holds in literals, in order.

    Literals that follow one another are joined as a compiler does. Names that `+` joins to a literal, or to
    each other in an assignment, stand for the text that the file assigns to them.
    """
    reader = _ConcatenationReader(text)
    reader.read()
    texts = _Texts(reader.named)
    found = []
    for chain in reader.chains:
        whole = texts.joined(chain.parts) if chain.line else ""
        if whole:
            above = texts.joined(chain.parts[: chain.first]).count("\n")
            found.append(HostString(whole, chain.line - above))
    return tuple(found)


def only_literals(text: str) -> HostString | None:
    """The text of a file that is nothing but literals, made to be included where host code wants a string.

    None if there is anything else beside comments and preprocessor lines.
    """
    pieces: list[str] = []
    line = 0
    for match in _ITEM.finditer(text):
        if match.lastgroup in ("comment", "directive"):
            continue
        value = _value(match)
        if value is None:
            return None
        line = line or text.count("\n", 0, match.start()) + 1
        pieces.append(value)
    return HostString("".join(pieces), line) if pieces else None


class _Texts:
    """Texts of names; all of them together, and what is made of them, have a limit."""

    def __init__(self, named: Mapping[str, _Concatenation]) -> None:
        self._named = named
        self._known: dict[str, str] = {}
        self._left = _MAX_CHARACTERS

    def joined(self, parts: Sequence[str | _Name], depth: int = 0) -> str:
        """The text of operands in a row; empty beyond the limit."""
        texts = [part if isinstance(part, str) else self._of(part.name, depth) for part in parts]
        self._left -= sum(map(len, texts))
        return "".join(texts) if self._left >= 0 else ""

    def _of(self, name: str, depth: int) -> str:
        if name not in self._known:
            self._known[name] = ""  # a name that its own text uses adds nothing
            if name in self._named and depth < _MAX_DEPTH:
                self._known[name] = self.joined(self._named[name].parts, depth + 1)
        return self._known[name]


def _value(match: "re.Match[str]") -> str | None:
    """Value of a string literal; None for anything else."""
    if match.group("raw") is not None:
        return match.group("inner")
    written = match.group("written")
    if written is None:
        return None
    try:
        return str(ast.literal_eval(f'"{written}"'))
    except (SyntaxError, ValueError):
        return str(written)


class _ConcatenationReader:
    """Splits a file into chains of operands, and knows which name each is assigned to."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.chains: list[_Concatenation] = []
        self.named: dict[str, _Concatenation] = {}
        self._chain = _Concatenation()
        self._target = ""
        self._adds = False
        self._last_name = ""
        self._joins = False
        """True while a `+` waits for its second operand."""
        self._after = ""
        """Kind of the operand just before: `literal`, `name`, or empty."""

    def read(self) -> None:
        for match in _ITEM.finditer(self._text):
            kind = match.lastgroup
            value = _value(match)
            if value is not None:
                self._literal(value, match.start())
            elif kind == "name":
                self._name(match)
            elif kind == "define":
                self._end_statement()
                self._assigned(match.group("defined"), adds=False)
            elif kind == "sign":
                self._sign(match.group())
            elif kind == "character":
                self._end_chain()
        self._end_statement()

    def _literal(self, value: str, start: int) -> None:
        if not (self._joins or self._after == "literal"):
            self._end_chain()
        if not self._chain.line:
            self._chain.line = self._text.count("\n", 0, start) + 1
            self._chain.first = len(self._chain.parts)
        self._chain.parts.append(value)
        self._after, self._joins = "literal", False

    def _name(self, match: "re.Match[str]") -> None:
        name = match.group().rpartition("::")[2]
        self._last_name = name
        if re.match(r"\s*\(", self._text[match.end() : match.end() + 80]):
            return  # a call or a cast: what it is given counts
        if not self._joins:
            self._end_chain()
        if name == self._target:
            self._adds = True  # x = x + "more" is x += "more"
        else:
            self._chain.parts.append(_Name(name))
        self._after, self._joins = "name", False

    def _sign(self, sign: str) -> None:
        if sign in _ENDS:
            self._end_statement()
        elif sign in ("=", "+="):
            name = self._last_name
            self._end_statement()
            self._assigned(name, adds=sign == "+=")
        elif sign == "+":
            self._joins = bool(self._after)
        elif sign not in ("(", ")", "[", "]") and not sign.startswith("\\"):
            self._end_chain()

    def _assigned(self, name: str, *, adds: bool) -> None:
        self._target, self._adds = name, adds

    def _end_chain(self) -> None:
        chain, self._chain = self._chain, _Concatenation()
        self._after, self._joins = "", False
        if not chain.parts or (not chain.line and not self._target):
            return
        if chain.line:
            self.chains.append(chain)
        if self._target:
            earlier = self.named.get(self._target) if self._adds else None
            known = earlier.parts if earlier else []
            self.named.setdefault(self._target, chain)
            if self._adds:
                self.named[self._target] = _Concatenation([*known, *chain.parts], chain.line, chain.first)
            self._target = ""

    def _end_statement(self) -> None:
        self._end_chain()
        self._target, self._adds, self._last_name = "", False, ""
