"""Token lists: brackets, commas, and one spacing."""

from collections.abc import Sequence

from warpsmith.source.lexing.tokens import Token

_CLOSERS = {")": "(", "]": "[", "]]": "[[", "}": "{", ">": "<"}
_SPACED = ("=", "==", "!=", "<=", ">=", "<<", "||", "?", ":", "+", "-", "/", "%")


class Nesting:
    """Open brackets so far. `<` counts if it follows a name (a template's list, not a comparison)."""

    def __init__(self, before: Token | None = None) -> None:
        self.open: list[str] = []
        self._before = before or Token("", "", 0)

    def step(self, token: Token) -> bool:
        """Take one token; true when it stands at the top level, opening and closing brackets included."""
        outside, text = not self.open, token.text
        if text in ("(", "[", "[[", "{"):
            self.open.append(text)
        elif text == "<":
            if self._before.kind == "name":
                self.open.append("<")
        elif text == ">":
            if self.open[-1:] == ["<"]:
                self.open.pop()
        elif text in _CLOSERS and _CLOSERS[text] in self.open:
            while self.open.pop() != _CLOSERS[text]:
                pass
        self._before = token
        return outside or not self.open


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Index of the bracket that closes the one at `opening`; the last index if none does."""
    nesting = Nesting(tokens[opening - 1] if opening else None)
    for n in range(opening, len(tokens)):
        nesting.step(tokens[n])
        if not nesting.open:
            return n
    return len(tokens) - 1


def split_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """A list in brackets, split at the commas of its own level; no element for an empty list."""
    parts: list[list[Token]] = [[]]
    nesting = Nesting()
    for token in tokens:
        if nesting.step(token) and token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [p for p in parts if p]


def joined(tokens: Sequence[Token]) -> str:
    """Tokens as text in one spacing: `const float*`, `vec_t<T, 8>`, `A::B const&`."""
    out = ""
    before = ""
    for token in tokens:
        text = token.text
        word = text[0].isalnum() or text[0] in "_$"
        after_word = before[-1:].isalnum() or before[-1:] in ("_", '"')
        after_sign = before in ("*", "&", "&&", ">", ")", "]]", "...")
        spaced = bool(out) and (text in _SPACED or before in _SPACED)
        if before == "," or (word and (after_word or after_sign)) or spaced:
            out += " "
        out, before = out + text, text
    return out
