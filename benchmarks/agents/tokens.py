"""How many tokens a text has."""

import functools
from collections.abc import Callable

VOCABULARY = "cl100k_base"
"""A public one; a model's own gives other numbers, in about the same proportion."""


def token_count(text: str) -> int | None:
    """Tokens of a text in tiktoken's `cl100k_base`; None where tiktoken or its vocabulary cannot be had.

    tiktoken is no dependency of the project: it reads its vocabulary from `TIKTOKEN_CACHE_DIR` or fetches it.
    """
    count = _counter()
    return None if count is None else count(text)


@functools.cache
def _counter() -> Callable[[str], int] | None:
    try:
        import tiktoken

        encoding = tiktoken.get_encoding(VOCABULARY)
    except (ImportError, OSError):
        return None
    return lambda text: len(encoding.encode(text, disallowed_special=()))
