"""What the tests of HIP for AMD need; `scripts/clang.py` installs it."""

from warpsmith.errors import Unavailable
from warpsmith.extensions.hip.clang_program import ADVICE, find_clang

__all__ = ["ADVICE", "PACKAGES", "clang_path"]

PACKAGES = ("clang-19", "lld-19")
"""What Debian calls the compiler and its linker."""


def clang_path() -> str | None:
    """The compiler that the product finds; None if there is none."""
    try:
        return str(find_clang().path)
    except Unavailable:
        return None
