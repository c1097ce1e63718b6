"""CUDA sources as HIP, or what keeps them from it.

A translation is right on warps of 32 and of 64 threads; whatever is not known to be so is refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warpsmith.hip.functions import without_barriers
from warpsmith.hip.source_words import Constants, Edit, Refusal, SourceWords, edited, is_full_mask
from warpsmith.hip.warp_signs import exchanges, lane_arithmetic, refused_exchanges
from warpsmith.hip.whole_warps import whole_warp_refusals
from warpsmith.hip.words import (
    CUB,
    EXCHANGES,
    HANDLED,
    HEADERS,
    HEADERS_OF_CUB,
    HIPCUB,
    PLAIN_HEADERS,
    REFUSED,
    REFUSED_BEGINNINGS,
    REFUSED_MEMBERS,
    RENAMED,
    SHARED,
    VECTORS,
    VOTES,
)
from warpsmith.rewrite.reader.lexing.brackets import joined
from warpsmith.rewrite.reader.lexing.tokens import Directive, Token

_INCLUDE = re.compile(r'([ \t]*#[ \t]*include[ \t]*)(?:<([^>\n]+)>|"([^"\n]+)")')
_ARCHITECTURE = re.compile(r"\bdefined\s*\(?\s*__CUDA_ARCH__\s*\)?")
_SHORT = re.compile(
    r"\b(?:__half2?|half2?|__nv_bfloat162?|nv_bfloat162?|short|char|uint8_t|int8_t|uint16_t|int16_t)\s*"
    r"(?:const\s*)?\*\s*(?:__restrict__\s*|const\s*)*(\w+)|"
    r"__shared__\s+(?:__half2?|half2?|__nv_bfloat162?|short|char|uint8_t|uint16_t)\s+(\w+)"
)
_OF_PLAIN = "this header is outside the subset"
_LOCAL = "its text is not at hand; translate a job, which carries its headers"


@dataclass(frozen=True)
class Translation:
    """What became of the files of a source."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """HIP texts by path; none if something is refused."""
    refusals: tuple[Refusal, ...] = ()
    """Words outside the subset, by file and line."""
    has_whole_warps: bool = False
    """True if warps exchange as a whole, so that the threads of a block along x are a multiple of 64."""
    has_atomics: bool = False
    """True if the order of operations may be open."""


def translated(texts: Mapping[str, str], macros: Mapping[str, str] | None = None) -> Translation:
    """Translate the files of one source.

    Args:
        texts: CUDA texts by path.
        macros: those that compile options define.
    """
    sources = [SourceWords.of(file, text) for file, text in texts.items()]
    constants = Constants.of(texts.values(), macros or {})
    own = frozenset().union(*(w.own_names for w in sources), macros or ())
    refusals: list[Refusal] = []
    edits: dict[str, list[Edit]] = {}
    for words in sources:
        found = _File(words, constants, own, frozenset(texts))
        edits[words.file] = list(found.edits())
        refusals += found.refusals
    shuffles = exchanges(sources)
    every = [t.text for words in sources for t in words.items]
    takes_width = "warpSize" in every
    refusals += refused_exchanges(shuffles, constants, takes_width)
    whole = any(e.is_whole for e in shuffles)
    has_memory = "__shared__" in every or "TempStorage" in every
    if whole or (has_memory and not shuffles):
        refusals += [r for words in sources for r in lane_arithmetic(words, constants)]
    refusals += (r for words in sources for r in _by_width(words, whole))
    refusals += without_barriers(sources)
    made = {words.file: edited(words.text, edits[words.file]) for words in sources}
    if whole and not refusals:
        refusals += whole_warp_refusals(SourceWords.of(file, text) for file, text in made.items())
    order = {file: n for n, file in enumerate(texts)}
    distinct = sorted(dict.fromkeys(refusals), key=lambda r: (order[r.file], r.line))
    atomics = any(word.startswith("atomic") for word in every)
    return Translation({} if distinct else made, tuple(distinct), whole, atomics)


def _by_width(words: SourceWords, whole: bool) -> Iterator[Refusal]:
    """Uses of a warp's width that no exchange goes by."""
    for token in words.items:
        if token.text == "warpSize" and not whole:
            reason = "its value depends on the device, and no exchange goes by it; write the number meant"
            yield words.refusal(token, token.text, reason)
        elif token.text in VOTES and whole:
            reason = "beside exchanges by warpSize it is not known which threads are meant"
            yield words.refusal(token, token.text, reason)


@dataclass
class _File:
    """The translation of one file, word by word."""

    words: SourceWords
    constants: Constants
    own: frozenset[str]
    """Macros and functions of all files."""
    files: frozenset[str]
    refusals: list[Refusal] = field(default_factory=list)

    def edits(self) -> Iterator[Edit]:
        """What changes; `refusals` is filled meanwhile."""
        for line in self.words.lines:
            yield from self._of_line(line)
        self._refuse_operators()
        groups = any(t.text in ("cooperative_groups", "cg") for t in self.words.items)
        short = {name for pair in _SHORT.findall(self.words.text) for name in pair if name}
        for at, token in enumerate(self.words.items):
            if token.kind == "name":
                yield from self._of_word(at, token, groups, short)
            elif token.text == "<<" and self.words.word(at + 1) == "<":
                self._refuse(token, "<<<", "a launch: host code, or a kernel that launches; leave it out")

    def _refuse(self, at: int | Token | Directive, word: str, reason: str) -> None:
        self.refusals.append(self.words.refusal(at, word, reason))

    def _of_line(self, line: Directive) -> Iterator[Edit]:
        include = _INCLUDE.match(line.text)
        if include is not None:
            name = include[2] or include[3]
            made = HIPCUB if name.startswith(HEADERS_OF_CUB) else HEADERS.get(name)
            if made is not None:
                yield Edit(line.start, line.start + include.end(), f"{include[1]}<{made}>")
            elif not self._is_kept(name):
                self._refuse(line, f"#include {name}", _LOCAL if include[3] else _OF_PLAIN)
        elif line.keyword == "include":
            self._refuse(line, "#include", "a header by a macro is outside the subset; write its name")
        elif line.keyword == "pragma" and re.match(r"(?:nv_|diag_|push_macro)", line.rest):
            self._refuse(line, f"#pragma {line.rest}", "it speaks to NVIDIA's compiler; leave it out")
        elif "__CUDA_ARCH__" in line.rest:
            yield from self._of_architecture(line)

    def _is_kept(self, name: str) -> bool:
        return name in PLAIN_HEADERS or any(f == name or f.endswith(f"/{name}") for f in self.files if f)

    def _of_architecture(self, line: Directive) -> Iterator[Edit]:
        """`__CUDA_ARCH__` as a question for device code is one of HIP; for a number it is one for NVIDIA."""
        place = line.text.index(line.keyword)
        head, condition = line.text[:place], line.text[place + len(line.keyword) :]
        asked = {"ifdef": "", "ifndef": "!"}
        if line.keyword in asked and condition.split() == ["__CUDA_ARCH__"]:
            text = f"{head}if {asked[line.keyword]}__HIP_DEVICE_COMPILE__"
            yield Edit(line.start, line.start + len(line.text.rstrip()), text)
            return
        made = _ARCHITECTURE.sub("__HIP_DEVICE_COMPILE__", condition)
        if line.keyword not in ("if", "elif") or "__CUDA_ARCH__" in made:
            reason = (
                "which branch is meant on AMD devices is not known; leave the one that every device can run"
            )
            self._refuse(line, "__CUDA_ARCH__", reason)
            return
        yield Edit(line.start, line.end, f"{head}{line.keyword}{made}")

    def _of_word(self, at: int, token: Token, groups: bool, short: set[str]) -> Iterator[Edit]:
        words, text = self.words, token.text
        of_namespace = words.word(at + 1) == "::"
        if text in RENAMED:
            yield Edit(token.start, token.start + len(text), RENAMED[text])
        elif text == "cub" and (of_namespace or words.word(at - 1) in ("namespace", "=")):
            yield Edit(token.start, token.start + len(text), "hipcub")
            self._refuse_cub(at)
        elif text == "cuda" and of_namespace:
            self._refuse(
                token, "cuda::", "libcu++ is outside the subset; use atomics and fences of the language"
            )
        elif text == "__launch_bounds__":
            yield from self._first_argument_only(at)
        elif text in EXCHANGES:
            yield from self._without_mask(at, text.removesuffix("_sync"))
        elif text in VOTES:
            yield from self._vote(at, is_any=text == "__any_sync")
        elif groups and text in REFUSED_MEMBERS:
            self._refuse(token, text, REFUSED_MEMBERS[text])
        elif groups and text in ("reduce", "inclusive_scan", "exclusive_scan") and words.word(at - 1) == "::":
            self._refuse(token, text, "HIP's cooperative groups have none; use shuffles of the group")
        elif text == "tiled_partition":
            self._refuse_wide(at)
        elif text.startswith("atomic"):
            self._refuse_atomics(at, short)
        elif text not in self.own or text in REFUSED:
            self._refuse_word(at, token)

    def _refuse_word(self, at: int, token: Token) -> None:
        text = token.text
        is_call = text not in ("malloc", "free") or self.words.word(at + 1) == "("
        is_own = text in self.own and not text.startswith("__")
        if text in REFUSED and not is_own and is_call:
            self._refuse(token, text, REFUSED[text])
            return
        if text in SHARED or text in HANDLED or text in self.own:
            return
        reason = next((r for begin, r in REFUSED_BEGINNINGS.items() if text.startswith(begin)), "")
        if reason and not (text.startswith("cuda") and not re.match(r"cuda[A-Z]", text)):
            self._refuse(token, text, reason)
        elif re.match(r"__[a-z]", text) and not text.startswith("__builtin_"):
            self._refuse(token, text, "it is not among the words that HIP is known to have")
        elif text.startswith(("__builtin_nv", "__nvvm")):
            self._refuse(token, text, "it is of NVIDIA's compiler")

    def _refuse_cub(self, at: int) -> None:
        words = self.words
        if words.word(at - 1) in ("namespace",) and words.word(at - 2) == "using":
            self._refuse(words.items[at], "using namespace cub", "write cub:: before each of its words")
            return
        name = words.word(at + 2)
        if words.word(at + 1) != "::":
            return
        if name not in CUB:
            self._refuse(words.items[at], f"cub::{name}", "not among the words of hipCUB in the subset")
        if name in ("WarpReduce", "WarpScan"):
            listed = "".join(t.text for t in words.items[at + 3 : at + 16])
            width = re.match(r"<[^<>]*?,(\d+)>", listed)
            if width is None or int(width[1]) > 32:
                reason = "without a width of at most 32 as its second argument it goes over the whole warp"
                self._refuse(words.items[at], f"cub::{name}", reason)

    def _refuse_wide(self, at: int) -> None:
        words = self.words
        end = next((n for n in range(at, len(words.items)) if words.word(n) in (">", ";", "(")), at)
        width = self.constants.value(words.items[at + 2 : end]) if words.word(at + 1) == "<" else None
        if words.word(at + 1) in (";", ",") or (words.word(at + 1) == "<" and width and width <= 32):
            return
        self._refuse(
            words.items[at], "tiled_partition", "only groups of a constant width of at most 32 are known"
        )

    def _refuse_atomics(self, at: int, short: set[str]) -> None:
        words, token = self.words, self.words.items[at]
        if token.text.endswith("_block"):
            self._refuse(token, token.text, "HIP has no atomics of a block; use those of the device")
        given = words.arguments(at)
        if given and any(t.text in short for t in given[0]):
            self._refuse(token, token.text, "HIP has no such function for elements of 8 and 16 bits")
        if token.text in ("atomicCAS", "atomicExch"):
            opening = next((n for n in range(at, -1, -1) if words.word(n) in (";", "{", "}")), 0)
            if any(t.text == "while" for t in words.items[opening:at]):
                reason = (
                    "threads of a wavefront wait for each other in such a loop; take the lock outside of one"
                )
                self._refuse(token, token.text, reason)

    def _refuse_operators(self) -> None:
        for at, token in enumerate(self.words.items):
            if token.text == "operator":
                opening = next((n for n in range(at, at + 5) if self.words.word(n) == "("), at)
                given = {t.text for t in self.words.items[opening : self.words.closing(opening)]}
                if given & VECTORS:
                    self._refuse(
                        token, "operator", "HIP has arithmetic of vectors already; leave this one out"
                    )

    def _first_argument_only(self, at: int) -> Iterator[Edit]:
        given, items = self.words.arguments(at), self.words.items
        if len(given) > 1:
            end = items[self.words.closing(at + 1)].start
            last = given[0][-1]
            yield Edit(last.start + len(last.text), end, "")

    def _mask(self, at: int, count: tuple[int, ...]) -> Edit | None:
        """The edit that takes a full mask away; None, and a refusal, for any other."""
        given, token = self.words.arguments(at), self.words.items[at]
        if len(given) not in count:
            self._refuse(token, token.text, "its arguments cannot be told apart")
            return None
        mask = self.constants.spelt(given[0])
        if not is_full_mask(mask):
            self._refuse(
                token, joined(given[0]), f"a mask of {token.text} that is not known to name all threads"
            )
            return None
        return Edit(given[0][0].start, given[1][0].start, "")

    def _without_mask(self, at: int, name: str) -> Iterator[Edit]:
        mask, token = self._mask(at, (3, 4)), self.words.items[at]
        if mask is not None:
            yield Edit(token.start, token.start + len(token.text), name)
            yield mask

    def _vote(self, at: int, is_any: bool) -> Iterator[Edit]:
        """A vote of 32 threads: half of the bits of a wavefront of 64."""
        mask, token, items = self._mask(at, (2,)), self.words.items[at], self.words.items
        if mask is None:
            return
        end = items[self.words.closing(at + 1)].start
        yield Edit(token.start, token.start + len(token.text), "((unsigned)(__ballot")
        yield Edit(mask.start, mask.end, "" if is_any else "!(")
        voted = f"{'' if is_any else ')'}) >> (__lane_id() & 32u)) {'!=' if is_any else '=='} 0u)"
        yield Edit(end, end + 1, voted)
