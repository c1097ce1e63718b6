"""Identifiers that sort by the time they were made."""

import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_CHARACTERS = 10
_RANDOM_BITS = 80


def new_id() -> str:
    """26 characters: milliseconds since 1970 first, then 80 random bits (the form of a ULID)."""
    value = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    characters = []
    for _ in range(_TIME_CHARACTERS + _RANDOM_BITS // 5):
        value, digit = divmod(value, 32)
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))
