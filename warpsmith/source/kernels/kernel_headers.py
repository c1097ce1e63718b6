"""The parts of a function's header: name, argument list, attributes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from warpsmith.source.lexing.brackets import closing, joined
from warpsmith.source.lexing.tokens import Token

_NOT_NAMES = frozenset(
    "__launch_bounds__ __attribute__ __attribute __cluster_dims__ __maxnreg__ __block_size__ "  # noqa: SIM905
    "__annotate__ __declspec alignas __align__ noexcept requires decltype asm __asm__ explicit throw".split()
)


def parameter_list(header: Sequence[Token]) -> tuple[int, str, int, int] | None:
    """Index of the name, its specialisation, and the indices of the argument parentheses."""
    calls = list(_calls(header))
    named = [c for c in calls if not header[c[0]].text.isupper()] or calls
    return named[-1] if named else None


def _calls(header: Sequence[Token]) -> Iterator[tuple[int, str, int, int]]:
    """Names of a header that parentheses follow, each as `parameter_list` returns it."""
    at = 0
    while at < len(header):
        special, before = "", at
        if header[at].text == "<" and at and header[at - 1].kind == "name":
            end = closing(header, at)
            special, at = joined(header[at + 1 : end]), end + 1
        if at >= len(header) or header[at].text not in ("(", "[", "[["):
            at += 0 if special else 1
            continue
        end = closing(header, at)
        name = header[before - 1] if before else header[at]
        if header[at].text == "(" and name.kind == "name" and name.text not in _NOT_NAMES:
            yield before - 1, special, at, end
        at = end + 1


def launch_bounds(header: Sequence[Token]) -> str:
    """Content of `__launch_bounds__` or `reqd_work_group_size`; empty without one."""
    for n, token in enumerate(header[:-1]):
        if token.text in ("__launch_bounds__", "reqd_work_group_size") and header[n + 1].text == "(":
            bounds = joined(header[n + 2 : closing(header, n + 1)])
            return bounds.replace("* ", " * ")
    return ""


def is_extern_c(header: Sequence[Token]) -> bool:
    """True if the header itself has `extern "C"`."""
    return any(a.text == "extern" and b.kind == "string" for a, b in pairwise(header))
