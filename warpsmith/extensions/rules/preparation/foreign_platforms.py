"""Lines that only compilers for other GPUs see, removed so that rules read what CUDA compiles."""

import re
from collections.abc import Sequence

from warpsmith.source.lexing.conditionals import decided, given_macros
from warpsmith.source.lexing.tokens import defined_names, directives
from warpsmith.source.tree.conditional_text import OPENING
from warpsmith.source.tree.syntax_tree import Edit, apply_edits

_FOREIGN = re.compile(r"\w*(?:ROCM|HIP|MUSA|AMDGCN|AMDGPU)\w*|__gfx\w+__")
"""Macros that no CUDA compiler and no header of CUDA defines."""
_OLDEST = 500
"""`__CUDA_ARCH__` of the oldest device for which CUDA 12 compiles."""
_ARCHITECTURE = re.compile(r"\b__CUDA_ARCH__\s*(>=|<)\s*(\d+)\b")
_Branch = tuple[int, int, str, str]
"""Line of a conditional: its first byte, its end, its word and its condition."""


def without_foreign_platforms(text: str, options: Sequence[str], library: Sequence[str]) -> str:
    """The text without branches that a macro of another vendor's platform would turn on.

    A macro that the source, a header of the job or an option defines is left alone. Lines keep their numbers.
    """
    defined = set(given_macros(options)).union(*map(defined_names, (text, *library)))
    foreign = any(name not in defined for name in _FOREIGN.findall(text))
    if not foreign and not _ARCHITECTURE.search(text):
        return text
    open_chains: list[list[_Branch]] = []
    edits: list[Edit] = []
    for line in directives(text):
        if line.keyword not in (*OPENING, "elif", "else", "endif"):
            continue
        if line.keyword in OPENING:
            open_chains.append([])
        if not open_chains:
            return text
        start, end = (len(text[:at].encode()) for at in (line.start, line.end))
        # A comment that goes on behind the line stays in the condition, which is then not decided.
        condition = re.sub(r"//.*|/\*.*?\*/|\\\n", " ", line.text.partition(line.keyword)[2]).strip()
        open_chains[-1].append((start, end, line.keyword, condition))
        if line.keyword == "endif":
            edits += _edits(open_chains.pop(), frozenset(defined))
    return text if open_chains else apply_edits(text, _outermost(text, edits))


def _edits(chain: list[_Branch], defined: frozenset[str]) -> list[Edit]:
    """Ranges of a chain to leave out; none where its first conditions are open."""
    *branches, (last, end, _, _) = chain
    starts = [start for start, *_ in branches[1:]] + [last]
    gone: list[Edit] = []
    for (start, body, word, condition), following in zip(branches, starts, strict=True):
        holds = True if word == "else" else _holds(word, condition, defined)
        if holds is None:
            return [*gone, Edit(start, body, f"#if {condition}")] if word == "elif" and gone else gone
        if holds:
            return [*gone, Edit(start, body, ""), Edit(following, end, "")]
        gone.append(Edit(start, following, ""))
    return [*gone, Edit(last, end, "")]


def _outermost(text: str, edits: list[Edit]) -> list[Edit]:
    """Edits that lie in no other one, each with as many line breaks as it takes away."""
    data, kept = text.encode(), list[Edit]()
    for edit in sorted(edits, key=lambda e: (e.start, -e.end)):
        if kept and edit.start < kept[-1].end:
            continue
        lines = data[edit.start : edit.end].count(b"\n")
        kept.append(Edit(edit.start, edit.end, edit.text + "\n" * lines))
    return kept


def _holds(word: str, condition: str, defined: frozenset[str]) -> bool | None:
    """True if a branch is taken; None if foreign macros and the oldest device do not say it alone."""
    if word in ("ifdef", "ifndef"):
        absent = _is_absent(condition, defined)
        return (word == "ifndef") if absent else None
    text = re.sub(r"\bdefined\b\s*\(?\s*(\w+)\s*\)?", r" \1 ", condition)
    text = _ARCHITECTURE.sub(_on_every_device, text)
    return decided(text, lambda name: 0 if _is_absent(name, defined) else None)


def _on_every_device(found: re.Match[str]) -> str:
    """A comparison of the architecture as 1 or 0 if it is the same on all devices."""
    sign, number = found.group(1), int(found.group(2))
    return found.group() if number > _OLDEST else str(int(sign == ">="))


def _is_absent(name: str, defined: frozenset[str]) -> bool:
    return name not in defined and _FOREIGN.fullmatch(name) is not None
