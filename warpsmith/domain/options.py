"""Compile options that a job may name. Anything else could read files, write them or run programs."""

import re
from collections.abc import Iterable

from warpsmith.domain.device import Backend


def refused_options(backend: Backend, options: Iterable[str]) -> dict[str, str]:
    """Options that are not on the allow-list of `backend`, each with what is allowed."""
    patterns = backend.language.options
    allowed = ", ".join(patterns) or "none"
    return {
        option: f"not allowed; allowed are (as regular expressions): {allowed}"
        for option in options
        if not any(re.fullmatch(pattern, option) for pattern in patterns)
    }
