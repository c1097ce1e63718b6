"""Environment probes, found by preprocessing a source twice. Pure.

A source is preprocessed a second time behind lines that give each of these words a value of which a condition
cannot be made and which no text has by itself. Up to the first word that is used both preprocessings go the
same way. So no word counts if the second one leaves the same text, however the words are written. If a
condition fails that names a number, other numbers tell whether it matters.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FILE_PROBES = ("__has_include", "__has_include_next")
"""Macros of the compiler that say which files the machine has."""
_NUMBERS = ("__LINE__", "__COUNTER__", "__INCLUDE_LEVEL__")
_TEXTS = ("__FILE__", "__BASE_FILE__", "__FILE_NAME__", "__DATE__", "__TIME__", "__TIMESTAMP__")
PROBES = (*_TEXTS, *_NUMBERS, *FILE_PROBES)
"""Macros of the compiler with the place, the time or the order of what it reads; no kernel needs them."""
_HEADER_ENDS = "#pragma warpsmith_header_ends"
_SOURCE_BEGINS = "#pragma warpsmith_source_begins"
_PLACE = "warpsmith_words"
_BELOW = (9, 1 << 10, 1 << 20)
"""Numbers that are tried in the place of another one are drawn below these, since small ones are common."""


@dataclass(frozen=True)
class Preprocessed:
    """Result of preprocessing a source."""

    text: str | None
    """All that it left, the driver's own header first; None if it failed."""
    log: str = ""
    """Messages of a preprocessor that failed."""


@dataclass(frozen=True)
class ProbeGuard:
    """Definitions of the probes, put before a source for a preprocessing that is only compared."""

    words: tuple[str, ...]
    salt: str
    """Random text that no source can foresee; else a file could have the name that stands for a probe."""
    below: int = 0
    """Words are numbers drawn below this; 0: texts, of which no condition can be made."""

    def before(self, source: str) -> str:
        """The source with other values for the words."""
        lines = [
            _HEADER_ENDS,
            "#pragma clang diagnostic push",
            '#pragma clang diagnostic ignored "-Wbuiltin-macro-redefined"',
            f'#line 1 "{_PLACE}"',
            *(self._definition(word) for word in self.words),
            "#pragma clang diagnostic pop",
            _SOURCE_BEGINS,
            '#line 1 "kernel.cl"',
        ]
        return "\n".join([*lines, source])

    def in_text(self, text: str) -> tuple[str, ...]:
        """The words whose values stand in a text."""
        return tuple(word for word in self.words if self._value(word) in text)

    def in_log(self, log: str) -> tuple[str, ...]:
        """The words of which a condition was to be made, by the places that the compiler names."""
        return tuple(word for n, word in enumerate(self.words, 1) if f"<Spelling={_PLACE}:{n}:" in log)

    def _definition(self, word: str) -> str:
        if self.below:
            return f"#define {word} {1 + secrets.randbelow(self.below)}"
        return f'#define {word}{"(file)" if word in FILE_PROBES else ""} "{self._value(word)}"'

    def _value(self, word: str) -> str:
        return f"{self.salt} {word}."


def guard(words: Sequence[str] = PROBES, below: int = 0) -> ProbeGuard:
    """A guard with a value that nothing has seen; see `ProbeGuard`."""
    return ProbeGuard(tuple(words), secrets.token_hex(8), below)


def header_in(guarded: str) -> str | None:
    """Header of the driver before every source, from the text of a guarded one; None if it cannot be told."""
    header, ends, _ = guarded.partition(_HEADER_ENDS)
    return header.rstrip() if ends else None


def source_in(plain: str, header: str) -> str | None:
    """Text left of a source without a guard; None if the header does not stand before it."""
    return plain[len(header) :] if plain.startswith(header) else None


def effective_probes(
    plain: str, by: ProbeGuard, second: Preprocessed, again: Callable[[ProbeGuard], Preprocessed]
) -> tuple[str, ...]:
    """The probes on which a source depends.

    Args:
        plain: what the preprocessor left of the source as it is timed.
        by: the guard of all words.
        second: what it left behind that guard.
        again: preprocesses the source behind another guard. Needed only where the first one made it fail.
    """
    if _is_same(plain, second):
        return ()
    found = by.in_text(_guarded_source(second) or "")
    # After a condition that cannot be made the source may go another way: each word alone tells.
    return found or _told_alone(plain, by.words, again) or (by.words if second.text is not None else ())


def _told_alone(
    plain: str, words: tuple[str, ...], again: Callable[[ProbeGuard], Preprocessed]
) -> tuple[str, ...]:
    def matters(words: tuple[str, ...], below: tuple[int, ...] = (0,)) -> bool:
        return any(not _is_same(plain, again(guard(words, b))) for b in below)

    texts = tuple(word for word in words if word not in _NUMBERS)
    numbers = tuple(word for word in words if word in _NUMBERS)
    found = tuple(word for word in texts if matters((word,))) if matters(texts) else ()
    found += tuple(word for word in numbers if matters((word,), _BELOW))
    # What only several numbers together change, none of them changes alone.
    return found or (numbers if matters(numbers, _BELOW) else ())


def _guarded_source(found: Preprocessed) -> str | None:
    _, begins, text = (found.text or "").partition(_SOURCE_BEGINS)
    return text if begins else None


def _is_same(plain: str, found: Preprocessed) -> bool:
    text = _guarded_source(found)
    return text is not None and _lines(text) == _lines(plain)


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]
