"""Declarations of a file at namespace level, so that single ones can be taken out by name."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from warpsmith.source.lexing.tokens import Token, Tokens, tokenise

_TYPE = re.compile(r"^(?:typedef\s+)?(?:struct|class|union|enum)\b[^(]*(?:\((?:[^()]|\([^()]*\))*\)[^(]*)?$")


@dataclass(frozen=True)
class Declaration:
    """A function, type, constant or macro."""

    header: str
    """Text up to the body or the end, comments blanked; a macro's first line."""
    text: str
    namespaces: tuple[str, ...]
    conditions: tuple[str, ...]
    """Preprocessor conditions around it, outermost first, as `#if` lines."""

    @property
    def is_macro(self) -> bool:
        """True for a `#define`; a declaration may begin with a conditional."""
        return re.match(r"\s*#\s*define\b", self.text) is not None

    def declares(self, name: str) -> bool:
        """True if it declares that name."""
        if self.is_macro:
            return re.match(rf"#\s*define\s+{re.escape(name)}\b", self.header) is not None
        named = rf"\b{re.escape(name)}\s*(?:<[^;{{}}]*>)?\s*(?:\(|\{{|=|;|:(?!:)|\[|$)"
        before = self.header.split("(", 1)[0] if re.search(r"\boperator\b", self.header) else self.header
        found = re.search(named, before)
        return found is not None and self.header.count("(", 0, found.start()) == self.header.count(
            ")", 0, found.start()
        )

    def written(self) -> str:
        """The declaration in its namespaces and conditions, as a source of its own."""
        around = () if self.is_macro else self.namespaces
        opened = "".join(f"namespace {n} {{ " for n in around)
        closed = " }" * len(around)
        lines = [*self.conditions, opened, self.text, closed, *("#endif" for _ in self.conditions)]
        return "\n".join(line for line in lines if line)


@dataclass
class _DeclarationReader:
    tokens: Tokens
    found: list[Declaration] = field(default_factory=list)
    scopes: list[str] = field(default_factory=list)
    conditions: list[list[str]] = field(default_factory=list)
    """The branches so far of each conditional around; empty for one inside of a declaration."""
    depth: int = 0
    began: int | None = None
    body_at: int | None = None
    saved: list[int] = field(default_factory=list)
    """Depths at the conditionals inside of the current declaration."""
    places: list[int] = field(default_factory=list)
    """Offsets at which the conditionals around begin."""

    def read(self) -> list[Declaration]:
        items = self.tokens.items
        for at, token in enumerate(items):
            if token.kind == "directive":
                self._directive(token)
            elif self.began is None and token.text == "}":
                if self.scopes:
                    self.scopes.pop()
            elif not (self.began is None and token.text == ";"):
                self._token(token, items[at + 1].text if at + 1 < len(items) else "")
        return self.found

    def _directive(self, token: Token) -> None:
        inside = self.began is not None
        if token.text == "define" and not inside:
            line = re.compile(r"[ \t]*#(?:\\\r?\n|[^\n])*").match(self.tokens.text, token.start)
            assert line is not None
            self._add(line.group(), f"#define {token.rest}")
        elif token.text in ("if", "ifdef", "ifndef"):
            self.saved.append(self.depth)
            self.places.append(token.start)
            self.conditions.append([] if inside else [_condition(token)])
        elif token.text in ("else", "elif") and self.conditions:
            self._reach_back()
            self.depth = self.saved[-1]
            if self.conditions[-1]:
                self.conditions[-1].append(token.rest if token.text == "elif" else "1")
        elif token.text == "endif" and self.conditions:
            self._reach_back()
            self.conditions.pop()
            self.saved.pop()
            self.places.pop()

    def _reach_back(self) -> None:
        """Let a declaration that goes on behind the branch it began in begin with the conditional."""
        if self.began is not None and self.conditions[-1]:
            self.began = min(self.began, self.places[-1])
            self.saved[-1] = 0
            self.conditions[-1] = []

    def _token(self, token: Token, following: str) -> None:
        if self.began is None:
            self.began, self.body_at, self.depth = token.start, None, 0
        if token.text == "{":
            header = self._text(self.began, token.start)
            space = re.match(r'(?:inline\s+)?namespace\b\s*([\w:]*)|extern\s+"', header)
            if space is not None and self.depth == 0:
                self.scopes.append(space.group(1) or "")
                self.began = None
                return
            if self.body_at is None and self.depth == 0:
                self.body_at = token.start
        self.depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        if self.depth > 0 or token.text not in (";", "}"):
            return
        header = self._text(self.began, self.body_at or token.start)
        bare = without_template(header)
        goes_on = following == ";" or _TYPE.match(bare) is not None or _is_initialised(bare)
        if token.text == "}" and goes_on:
            return
        self._add(self._text(self.began, token.start + 1), header)
        self.began = None

    def _text(self, start: int, end: int) -> str:
        return self.tokens.text[start:end]

    def _add(self, text: str, header: str) -> None:
        spaces = tuple(s for s in self.scopes if s)
        bare = re.sub(r"//[^\n]*|/\*.*?\*/", " ", header, flags=re.S)
        if not re.match(r"\s*#\s*define\b", bare):
            bare = re.sub(r"^[ \t]*#[^\n]*", " ", bare, flags=re.M)
        self.found.append(
            Declaration(bare.strip(), text, spaces, tuple(_line(c) for c in self.conditions if c))
        )


def declarations(text: str) -> list[Declaration]:
    """All declarations of a file, in order, those of every preprocessor branch."""
    return _DeclarationReader(tokenise(text)).read()


def taken(text: str, names: Collection[str]) -> str:
    """The declarations of these names, in the order of the file, as source text.

    Args:
        names: `name` takes all declarations of it, `name#2` the second one.

    Raises:
        LookupError: the file does not declare one of them.
    """
    found = declarations(text)
    wanted: set[int] = set()
    for asked in names:
        name, _, number = asked.partition("#")
        places = [n for n, d in enumerate(found) if d.declares(name)]
        chosen = places if not number else places[int(number) - 1 : int(number)]
        if not chosen:
            raise LookupError(f"nothing declares {asked}")
        wanted.update(chosen)
    return "\n".join(found[n].written() for n in sorted(wanted)) + "\n"


def _is_initialised(header: str) -> bool:
    """True if an `=` introduces the braces: `int sizes[] = {...}`, but not `operator==(...) {...}`."""
    before = header.partition("(")[0]
    return "=" in before and "operator" not in before


def without_template(header: str) -> str:
    """A header without `template <...>` in front, and without comments and directives."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*", " ", header, flags=re.S | re.M).strip()
    while text.startswith("template"):
        depth, end = 0, len(text)
        for at, sign in enumerate(text):
            depth += (sign == "<") - (sign == ">")
            if sign == ">" and depth == 0:
                end = at + 1
                break
        text = text[end:].strip()
    return text


def _condition(token: Token) -> str:
    if token.text == "if":
        return token.rest
    return f"{'!' if token.text == 'ifndef' else ''}defined({token.rest.split()[0]})"


def _line(branches: list[str]) -> str:
    """The condition of the last branch, given those before it."""
    *before, own = branches
    return "#if " + " && ".join([*(f"!({b})" for b in before), f"({own})"])
