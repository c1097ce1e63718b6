"""Uses of macros replaced by the text that the preprocessor makes of them."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))+)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<mark>\#\#|\.\.\.|->\*?|::|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|.)""",
    re.X | re.S,
)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define\s+(\w+)(\([^()]*\))?", re.S)
_UNWRITTEN = frozenset(("#", "_Pragma", "asm", "__asm__", "__LINE__", "__COUNTER__", "__VA_OPT__"))
"""Words of bodies that mean something else, or nothing, outside of a macro."""
_REST = "__VA_ARGS__"
_MOST_STEPS = 20_000
MOST_CHARACTERS = 8_000
"""Limit on what is made of one use."""


class Stuck(Exception):
    """A use that cannot be replaced by a text that means the same."""


@dataclass(frozen=True)
class _MacroToken:
    kind: str
    text: str
    hidden: frozenset[str] = frozenset()
    """Macros that it came from, and that are not replaced in it."""


@dataclass(frozen=True)
class Macro:
    """A macro's definition."""

    parameters: tuple[str, ...] | None
    """Names of the parameters; None for a macro without a list of parameters."""
    body: str
    """Replacement text, on one line and without comments."""

    @property
    def words(self) -> frozenset[str]:
        """Names in the body."""
        return frozenset(t.text for t in _tokens(self.body) if t.kind == "name")

    @property
    def is_writable(self) -> bool:
        """False for a body that means something else outside of the macro."""
        known = all(re.fullmatch(r"\w+", p) for p in self.parameters or ())
        joins = self.body.startswith("##") or self.body.endswith("##")
        return known and not joins and all(t.text not in _UNWRITTEN for t in _tokens(self.body))


def definition(directive: str) -> tuple[str, Macro] | None:
    """The name and the macro that the text of a `#define` gives."""
    head = _DEFINE.match(re.sub(r"\\\r?\n", " ", directive))
    if head is None:
        return None
    rest = re.sub(r"\\\r?\n", " ", directive)[head.end() :]
    listed = None
    if head.group(2) is not None:
        inner = head.group(2)[1:-1].strip()
        listed = tuple(w.strip() for w in inner.split(",")) if inner else ()
        listed = (*listed[:-1], _REST) if listed[-1:] == ("...",) else listed
    return head.group(1), Macro(listed, _joined(_tokens(rest)).strip())


def uses_of(text: str, names: Iterable[str]) -> Iterator[re.Match[str]]:
    """Places of names in a text without comments and strings."""
    wanted = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.finditer(rf"(?<![\w$.'])(?:{wanted})(?![\w$])", text) if wanted else iter(())


def reached(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Names, and all that they lead to, by way of others too."""
    found = set(names)
    waiting = list(found)
    while waiting:
        more = set(following(waiting.pop())) - found
        found |= more
        waiting += more
    return found


class Expander:
    """Replaces uses of macros as the preprocessor does, except for those that stay.

    Args:
        macros: those to be replaced.
        kept: other names that are, or may be, macros; None: not known what for.
    """

    def __init__(self, macros: Mapping[str, Macro], kept: Mapping[str, Macro | None]) -> None:
        self._macros = macros
        self._kept = kept
        self._steps = 0

    def use_at(self, text: str, at: int) -> tuple[int, str]:
        """The end of the use that starts at `at`, and what the preprocessor makes of it.

        Raises:
            Stuck: the use has to stay.
        """
        self._steps = 0
        end = at
        for _ in range(8):
            end = self._reach(text, end)
            made = self._replaced(_tokens(text[at:end]))
            last = next((t for t in reversed(made) if t.kind != "space"), None)
            macro = self._macros.get(last.text) if last is not None and last.kind == "name" else None
            calls = macro is not None and macro.parameters is not None
            if not (calls and re.compile(r"\s*\(").match(text, end)):
                return end, self._checked(made)
        raise Stuck

    def _reach(self, text: str, at: int) -> int:
        """The end of a name at `at` and of the arguments behind it, or of the arguments alone."""
        name = re.compile(r"[\w$]*").match(text, at)
        end = at if name is None else name.end()
        macro = self._macros.get(text[at:end])
        if macro is not None and macro.parameters is None:
            return end
        call = end_of_call(text, end)
        if call is None:
            raise Stuck
        return call

    def _checked(self, made: Sequence[_MacroToken]) -> str:
        shown = [t for t in made if t.kind != "space"]
        for n, token in enumerate(shown):
            if token.kind != "name":
                continue
            called = shown[n + 1].text == "(" if n + 1 < len(shown) else False
            if self._has_to_stay(token, called=called):
                raise Stuck
        text = _joined(made).strip()
        if len(text) > MOST_CHARACTERS:
            raise Stuck
        return text

    def _has_to_stay(self, token: _MacroToken, *, called: bool) -> bool:
        """True for a name that would be read otherwise in the replaced text than in the preprocessor's."""
        if token.text in self._macros:
            return called or token.text in token.hidden
        if token.text not in self._kept:
            return False
        macro = self._kept[token.text]
        is_called = called and (macro is None or macro.parameters is not None)
        return is_called or not token.hidden.isdisjoint(reached({token.text}, self._words_of))

    def _words_of(self, name: str) -> frozenset[str]:
        macro = self._kept.get(name) or self._macros.get(name)
        return macro.words if macro is not None else frozenset()

    def _replaced(self, tokens: Sequence[_MacroToken]) -> list[_MacroToken]:
        waiting, out = deque(tokens), list[_MacroToken]()
        while waiting:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise Stuck
            token = waiting.popleft()
            macro = self._macros.get(token.text) if token.kind == "name" else None
            if macro is None or token.text in token.hidden:
                out.append(token)
                continue
            if macro.parameters is None:
                body = self._body(macro, {}, token.hidden | {token.text})
            else:
                call = _arguments(waiting)
                if call is None:
                    out.append(token)
                    continue
                given, count = call
                closing = waiting[count - 1]
                for _ in range(count):
                    waiting.popleft()
                body = self._body(
                    macro, _bound(macro.parameters, given), (token.hidden & closing.hidden) | {token.text}
                )
            waiting.extendleft(reversed(body))
        return out

    def _body(
        self, macro: Macro, given: Mapping[str, list[_MacroToken]], hidden: frozenset[str]
    ) -> list[_MacroToken]:
        """A macro's body with arguments in the place of its parameters."""
        tokens = _tokens(macro.body)
        out: list[_MacroToken] = []
        n = 0
        while n < len(tokens):
            token = tokens[n]
            if token.text == "##":
                n = _next(tokens, n)
                while out and out[-1].kind == "space":
                    out.pop()
                self._paste(out, self._operand(tokens[n], given))
            elif token.kind == "name" and token.text in given:
                pasted = tokens[following].text == "##" if (following := _next(tokens, n)) else False
                out += self._operand(token, given) if pasted else self._replaced(given[token.text])
            else:
                if (following := _next(tokens, n)) and tokens[following].text == "##":
                    self._operand(token, given)
                out.append(token)
            n += 1
        self._steps += len(out)
        return [_MacroToken(t.kind, t.text, t.hidden | hidden) for t in out]

    def _operand(self, token: _MacroToken, given: Mapping[str, list[_MacroToken]]) -> list[_MacroToken]:
        """Operand of `##`, which is not replaced beforehand.

        A name that the preprocessor would have replaced in an outer macro, but that stays here, says nothing.
        """
        found = given.get(token.text, [token]) if token.kind == "name" else [token]
        if not found or any(t.text in self._kept or t.text.startswith("__") for t in found):
            raise Stuck
        return found

    def _paste(self, out: list[_MacroToken], right: list[_MacroToken]) -> None:
        if not out:
            raise Stuck
        left = out.pop()
        text = left.text + right[0].text
        made = _tokens(text)
        if len(made) != 1 or made[0].kind not in ("name", "number"):
            raise Stuck
        out.append(_MacroToken(made[0].kind, text, left.hidden & right[0].hidden))
        out += right[1:]


def end_of_call(text: str, at: int) -> int | None:
    """The end of the brackets that follow at a place; None if none do."""
    opening = re.compile(r"(?:\s|\\\n|/\*.*?\*/|//[^\n]*)*\(", re.S).match(text, at)
    if opening is None:
        return None
    depth = 1
    for m in _TOKEN.finditer(text, opening.end()):
        depth += (m.group() == "(") - (m.group() == ")")
        if depth == 0:
            return m.end()
    return None


def _tokens(text: str) -> list[_MacroToken]:
    return [
        _MacroToken(m.lastgroup or "", " " if m.lastgroup == "space" else m.group())
        for m in _TOKEN.finditer(text)
    ]


def _next(tokens: Sequence[_MacroToken], n: int) -> int:
    """The index of the following token that is no space; 0 if there is none."""
    return next((m for m in range(n + 1, len(tokens)) if tokens[m].kind != "space"), 0)


def _arguments(waiting: "deque[_MacroToken]") -> tuple[list[list[_MacroToken]], int] | None:
    """The arguments of a call whose bracket follows, and the number of tokens up to its end."""
    depth, found, current = 0, list[list[_MacroToken]](), list[_MacroToken]()
    for n, token in enumerate(waiting):
        if depth == 0 and token.kind == "space":
            continue
        if depth == 0 and token.text != "(":
            return None
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return [*found, _trimmed(current)], n + 1
        if depth == 1 and token.text == ",":
            found.append(_trimmed(current))
            current = []
        elif depth > 1 or token.text != "(":
            current.append(token)
    return None


def _trimmed(tokens: list[_MacroToken]) -> list[_MacroToken]:
    while tokens and tokens[-1].kind == "space":
        tokens.pop()
    while tokens and tokens[0].kind == "space":
        tokens.pop(0)
    return tokens


def _bound(parameters: tuple[str, ...], given: list[list[_MacroToken]]) -> dict[str, list[_MacroToken]]:
    """Arguments by parameter.

    Raises:
        Stuck: too few or too many.
    """
    if parameters[-1:] == (_REST,):
        most = len(parameters) - 1
        rest: list[_MacroToken] = []
        for n, more in enumerate(given[most:]):
            rest += [_MacroToken("mark", ","), _MacroToken("space", " "), *more] if n else more
        given = [*given[:most], rest]
    if parameters == () and given == [[]]:
        return {}
    if len(given) != len(parameters):
        raise Stuck
    return dict(zip(parameters, given, strict=True))


def _joined(tokens: Sequence[_MacroToken]) -> str:
    """The text of tokens, with a space between two that would become one."""
    out: list[str] = []
    before = ""
    for token in tokens:
        if token.kind == "space":
            if before != " ":
                out.append(" ")
            before = " "
            continue
        joined = _TOKEN.match(before + token.text) if before.strip() else None
        if joined is not None and joined.end() > len(before):
            out.append(" ")
        out.append(token.text)
        before = token.text
    return "".join(out)
