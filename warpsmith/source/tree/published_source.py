"""A tuned source as one would ship it: the chosen branches only, indented as the user's own source."""

import difflib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from warpsmith.domain.templates.template import ConfiguredKernel, without_definitions
from warpsmith.source.lexing.tokens import blank, directives, tokenise
from warpsmith.source.tree.conditional_text import Unbalanced, resolved, whole_numbers

OURS = "WS_"
"""Beginning of the names of our own macros."""
MAX_LINES = 4000
"""Longer sources keep their indentation: lines are compared with those of the user."""
_WORD = re.compile(r"[A-Za-z_]\w*")


def published_source(kernel: ConfiguredKernel, original: str) -> str:
    """The source of `kernel` with the chosen branches only; `kernel.source` if that might be another program.

    Args:
        original: the user's source, from which indentation is taken.
    """
    return _published(kernel.kernel.text, tuple(kernel.defines.items()), original) or kernel.source


@lru_cache(maxsize=64)
def _published(template: str, defines: tuple[tuple[str, str], ...], original: str) -> str | None:
    names = dict(defines)
    body = without_definitions(template, names)
    if re.search(r"\b__LINE__\b", body) or any(_changes(d.keyword, d.rest, names) for d in directives(body)):
        return None
    try:
        chosen = _without_unused(_chosen(body, names))
        text = _indented(chosen, original)
        same = _reading(body, names) == _reading(text, names) and _words(body, names) == _words(text, names)
    except Unbalanced:
        return None
    prologue = "".join(
        f"#define {name} {value}\n"
        for name, value in defines
        if not name.startswith(OURS) or re.search(rf"\b{name}\b", text)
    )
    return prologue + ("\n" if prologue else "") + text if same else None


def _changes(keyword: str, rest: str, names: dict[str, str]) -> bool:
    """True for a line that gives a parameter another value, which the conditions below it would see."""
    found = _WORD.match(rest)
    return keyword in ("define", "undef") and found is not None and found.group() in names


def _chosen(body: str, names: dict[str, str]) -> str:
    return resolved(body, whole_numbers(names), set(names), lambda name: name.startswith(OURS))


def _without_unused(text: str) -> str:
    """`text` without definitions of our macros that nothing uses."""
    while True:
        masked = blank(text)
        lines = [d for d in directives(text) if d.keyword == "define" and _defined(d.rest).startswith(OURS)]
        unused = [d for d in lines if not _uses(masked[: d.start] + masked[d.end :], _defined(d.rest))]
        if not unused:
            return text
        for d in reversed(unused):
            text = text[: d.start] + text[d.end + 1 :]


def _defined(rest: str) -> str:
    found = _WORD.match(rest)
    return found.group() if found else ""


def _uses(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _reading(text: str, names: dict[str, str]) -> list[str]:
    """Program as a compiler reads it: words, signs, directives that are not decided, our macros in use."""
    reached = _without_unused(_chosen(text, names))
    return [
        f"#{t.text} {t.rest}" if t.kind == "directive" else reached[t.start : t.start + len(t.text)]
        for t in tokenise(reached).items
    ]


def _words(text: str, names: dict[str, str]) -> list[list[str]]:
    """Program by the other reader of conditionals, once with unknown macros undefined, once with them 1."""
    open_names = {
        word
        for d in directives(_chosen(text, names))
        if d.keyword in ("if", "elif", "ifdef", "ifndef")
        for word in _WORD.findall(d.rest)
    }
    found = []
    for given in (names, dict.fromkeys(sorted(open_names), "1") | names):
        tokens = tokenise(text, given)
        items = (tokens.items[n] for n in tokens.forward(0))
        found.append([text[t.start : t.start + len(t.text)] for t in items])
    return found


def _indented(text: str, original: str) -> str:
    """`text` with lines of the user's as they stand there, and others by the depth of their braces.

    Empty lines are those of the user's.
    """
    lines, own = text.split("\n"), original.rstrip().split("\n")
    if len(lines) + len(own) > MAX_LINES:
        return text
    kept = _matched(lines, own)
    unit = _unit(own)
    depths, own_depths = _depths(text), _depths(original)
    shown: list[str] = []
    continued = False
    for n, line in enumerate(lines):
        words, before = line.strip(), continued
        continued = line.endswith("\\")
        if n in kept:
            m = kept[n]
            shift = depths[n] - own_depths[m] if words and not words.startswith("#") else 0
            shown.append(_shifted(own[m], shift, unit))
        elif words and (before or (words.startswith("#") and not words.startswith("#pragma"))):
            shown.append(line.rstrip() if before else words)
        elif words:
            shown.append(unit * (depths[n] + _hangs(shown, words)) + words)
    return "\n".join(shown).rstrip("\n") + "\n"


def _shifted(line: str, by: int, unit: str) -> str:
    if by >= 0:
        return (unit * by + line).rstrip()
    return line.removeprefix(unit * -by).rstrip()


def _hangs(shown: Sequence[str], words: str) -> bool:
    """True for the one statement that a loop or condition above it holds without braces."""
    above = next((s.strip() for s in reversed(shown) if not s.strip().startswith("#")), "")
    heads = re.match(r"(?:for|while|if|else)\b", above) and not above.endswith(("{", ";", "}"))
    return bool(heads) and not words.startswith(("{", "#"))


def _matched(lines: Sequence[str], own: Sequence[str]) -> dict[int, int]:
    """The user's line of each line that is one of theirs, by number."""
    matcher = difflib.SequenceMatcher(None, [s.strip() for s in lines], [s.strip() for s in own], False)
    found: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        found.update((block.a + n, block.b + n) for n in range(block.size))
    return found


def _unit(own: Sequence[str]) -> str:
    """The user's step of indentation: that of the least indented line."""
    steps = [line[: len(line) - len(line.lstrip())] for line in own if line.strip()]
    return min((s for s in steps if s), key=len, default="  ")


def _depths(text: str) -> list[int]:
    """Open braces at the start of each line, without those that it closes first."""
    return list(_each_depth(blank(text).split("\n")))


def _each_depth(lines: Sequence[str]) -> Iterator[int]:
    depth = 0
    continued = False
    for line in lines:
        closing = re.match(r"[\s}]*", line)
        yield max(0, depth - (closing.group().count("}") if closing else 0))
        # The braces of a macro are those of its uses.
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if not directive:
            depth = max(0, depth + line.count("{") - line.count("}"))
