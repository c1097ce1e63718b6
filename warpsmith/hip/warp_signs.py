"""Signs in a source that it counts on warps of 32 threads."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warpsmith.hip.functions import functions_of
from warpsmith.hip.source_words import Constants, Refusal, SourceWords
from warpsmith.hip.words import EXCHANGES
from warpsmith.rewrite.reader.lexing.brackets import joined
from warpsmith.rewrite.reader.lexing.tokens import Token

WIDTHS = (1, 2, 4, 8, 16, 32)
"""Widths of an exchange that stay inside a warp of 32 and of 64."""
_OF_32: dict[tuple[str, ...], tuple[int, ...]] = {
    ("%",): (32,),
    ("/",): (32,),
    ("&",): (31,),
    (">", ">"): (5,),
    ("<",): (32,),
    ("<=",): (31, 32),
    (">",): (31,),
    (">=",): (32,),
    ("==",): (31,),
}
_ENDS = frozenset((";", ",", "{", "}", "=", "(", "?", ":", "&&", "||", "return", "[", "[["))
_THREADS = frozenset(("threadIdx", "thread_rank"))
_BY_32 = (
    "{} beside a thread's number counts on warps of 32; AMD's have 64. Name the width in every exchange "
    "(__shfl_down_sync(mask, v, o, 32)), or take it from warpSize"
)
_NO_WIDTH = (
    "an exchange without a width goes over the whole warp, which has 64 threads on AMD devices; name a width "
    "of at most 32 as the last argument, or take the offsets from warpSize"
)


@dataclass(frozen=True)
class Exchange:
    """A shuffle in a source."""

    words: SourceWords
    at: int
    """Index of its name."""
    arguments: tuple[tuple[Token, ...], ...]

    @property
    def is_whole(self) -> bool:
        """True if it goes over the whole warp."""
        return len(self.arguments) < 4 or any(t.text == "warpSize" for t in self.arguments[3])

    def refusal(self, reason: str) -> Refusal:
        """A refusal of it."""
        token = self.words.items[self.at]
        return self.words.refusal(token, token.text, reason)


def exchanges(sources: Iterable[SourceWords]) -> list[Exchange]:
    """All shuffles."""
    return [
        Exchange(words, at, tuple(tuple(a) for a in words.arguments(at)))
        for words in sources
        for at, token in enumerate(words.items)
        if token.text in EXCHANGES
    ]


def refused_exchanges(found: list[Exchange], constants: Constants, takes_width: bool) -> Iterator[Refusal]:
    """Exchanges that are not known to stay inside a width of at most 32, nor to follow `warpSize`."""
    kinds = {e.is_whole for e in found}
    for exchange in found:
        if len(exchange.arguments) not in (3, 4):
            yield exchange.refusal("its arguments cannot be told apart")
        elif exchange.is_whole and not takes_width:
            yield exchange.refusal(_NO_WIDTH)
        elif exchange.is_whole and len(kinds) > 1:
            yield exchange.refusal(
                "others of this source name a width of their own; give this one a width too"
            )
        elif not exchange.is_whole:
            yield from _of_width(exchange, constants)


def _of_width(exchange: Exchange, constants: Constants) -> Iterator[Refusal]:
    width, name = constants.value(exchange.arguments[3]), joined(exchange.arguments[3])
    if width is None and name not in constants.template_names:
        yield exchange.refusal(f"its width {name} is no constant of the source; give a number of at most 32")
        return
    if width is not None and width not in WIDTHS:
        yield exchange.refusal(f"its width {name} is none of {', '.join(map(str, WIDTHS))}")
        return
    offset = _offset(exchange, constants)
    if offset is not None and offset >= (width or max(WIDTHS)):
        yield exchange.refusal(f"an offset of {offset} leaves the {name} threads of its width")


def _offset(exchange: Exchange, constants: Constants) -> int | None:
    """The offset, or the one with which its loop begins; None if it is not known."""
    given = exchange.arguments[2]
    value = constants.value(given)
    if value is not None or len(given) != 1:
        return value
    items, name = exchange.words.items, given[0].text
    for at in range(exchange.at, 1, -1):
        if items[at].text == "=" and items[at - 1].text == name and items[at + 1].text != "=":
            end = next((n for n in range(at, len(items)) if items[n].text in (";", ",")), at)
            return constants.value(items[at + 1 : end])
    return None


def lane_arithmetic(words: SourceWords, constants: Constants) -> Iterator[Refusal]:
    """Numbers of a warp of 32 (32, 31, 5) beside the number of a thread."""
    threads = _of_threads(words)
    items = words.items
    for at in range(1, len(items) - 1):
        signs: tuple[str, ...] = (items[at].text,)
        if signs == (">",) and items[at + 1].text == ">":
            signs = (">", ">")
        limits = _OF_32.get(signs)
        if limits is None or (signs == (">",) and items[at - 1].text == ">"):
            continue
        after = at + len(signs)
        if words.word(after) == "=":
            after += 1
        end = words.closing(after) if words.word(after) == "(" else after
        value = constants.value(items[after : end + 1])
        if value in limits and _left(words, at) & threads:
            written = " ".join((*signs, items[after].text))
            yield words.refusal(items[at], written, _BY_32.format(f"'{written}'"))


def _of_threads(words: SourceWords) -> frozenset[str]:
    """Names whose value comes of a thread's number."""
    found = set(_THREADS)
    for function in functions_of(words):
        if not function.is_kernel:  # what it is given may be a thread's number
            found |= set(re.findall(r"(\w+) (?=,|$)", function.parameters))
    items = words.items
    for _ in range(4):
        before = len(found)
        for at in range(1, len(items) - 1):
            if items[at].text != "=" or items[at - 1].kind != "name":
                continue
            if _right(words, at) & found:
                found.add(items[at - 1].text)
        if len(found) == before:
            break
    return frozenset(found)


def _right(words: SourceWords, at: int) -> set[str]:
    """Names behind a sign, up to the end of the expression, subscripts left out."""
    names: set[str] = set()
    depth = 0
    for token in words.items[at + 1 :]:
        if token.text in ("[", "]"):
            depth += 1 if token.text == "[" else -1
        elif token.text in (";", "{", "}"):
            break
        elif depth == 0 and token.kind == "name":
            names.add(token.text)
    return names


def _left(words: SourceWords, at: int) -> set[str]:
    """Names of the operand before a sign, those in its brackets included, subscripts left out."""
    names: set[str] = set()
    rounds, squares = 0, 0
    for n in range(at - 1, -1, -1):
        token = words.items[n]
        if token.text == "]":
            squares += 1
        elif token.text == "[" and squares:
            squares -= 1
        elif squares:
            continue
        elif token.text == ")":
            rounds += 1
        elif token.text == "(" and rounds:
            rounds -= 1
        elif rounds == 0 and token.text in _ENDS:
            break
        elif token.kind == "name":
            names.add(token.text)
    return names
