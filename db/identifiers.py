"""Identifiers that sort by their time of creation."""

import secrets
import threading
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_CHARACTERS = 10
_RANDOM_BITS = 80


class _Numbers:
    """Milliseconds since 1970 followed by random bits; always larger than the previous number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            self._last = max(fresh, self._last + 1 + secrets.randbits(_RANDOM_BITS // 2))
            return self._last


_numbers = _Numbers()


def new_id() -> str:
    """26 characters: milliseconds since 1970, then 80 random bits (the form of a ULID).

    Identifiers of one process ascend, also within a millisecond.
    """
    value = _numbers.next()
    characters = []
    for _ in range(_TIME_CHARACTERS + _RANDOM_BITS // 5):
        value, digit = divmod(value, 32)
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))
