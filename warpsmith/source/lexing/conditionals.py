"""Preprocessor conditions, evaluated with the macros of one file."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping

from warpsmith.source.lexing.number_literals import with_plain_integers

MAX_CHARACTERS = 4000
"""Limit on a condition, before and after its macros are put in. A longer one counts as not known to hold."""
_GIVEN = re.compile(r"-D\s*(\w+)(?:=(.*))?")


def given_macros(options: Iterable[str]) -> dict[str, str]:
    """Macros that compiler options define (`-DNAME`, `-DNAME=VALUE`)."""
    matches = filter(None, map(_GIVEN.fullmatch, options))
    return {m.group(1): "1" if m.group(2) is None else m.group(2) for m in matches}


def holds(keyword: str, condition: str, macros: Mapping[str, str]) -> bool:
    """True if the branch of `#keyword condition` is taken; macros of other files count as undefined."""
    if keyword == "ifdef":
        return condition in macros
    if keyword == "ifndef":
        return condition not in macros
    if len(condition) > MAX_CHARACTERS:
        return False
    text = re.sub(
        r"\bdefined\b\s*\(?\s*(\w+)\s*\)?", lambda m: " 1 " if m.group(1) in macros else " 0 ", condition
    )
    for _ in range(4):
        text = re.sub(r"\b[A-Za-z_]\w*\b(?!\s*\()", lambda m: f" {macros.get(m.group(), '0') or '0'} ", text)
        if len(text) > MAX_CHARACTERS:
            return False
    text = with_plain_integers(text)
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, _no_value) != 0
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return False


def decided(condition: str, value_of: Callable[[str], int | None]) -> bool | None:
    """Truth of a condition if only some of its names have known values; None if these leave it open."""
    text = re.sub(r"!(?!=)", " not ", condition.replace("&&", " and ").replace("||", " or "))
    text = with_plain_integers(text)
    try:
        value = _value(ast.parse(" ".join(text.split()), mode="eval").body, value_of)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    return None if value is None else value != 0


_OPERATIONS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Mod: lambda a, b: a % b,
    ast.Eq: lambda a, b: int(a == b),
    ast.NotEq: lambda a, b: int(a != b),
    ast.Lt: lambda a, b: int(a < b),
    ast.LtE: lambda a, b: int(a <= b),
    ast.Gt: lambda a, b: int(a > b),
    ast.GtE: lambda a, b: int(a >= b),
}


def _value(node: ast.expr, value_of: Callable[[str], int | None]) -> int | None:
    """The value of a condition; None if names without a value leave it open.

    Raises:
        ValueError: it is no condition on integers.
    """
    match node:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.Name(id=name):
            return value_of(name)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = _value(operand, value_of)
            return None if held is None else int(not held)
        case ast.BoolOp(op=op, values=values):
            ends, is_open = isinstance(op, ast.Or), False
            for found in (_value(v, value_of) for v in values):
                if found is not None and bool(found) == ends:
                    return int(ends)
                is_open = is_open or found is None
            return None if is_open else int(not ends)
        case (
            ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right])
        ) if type(op) in _OPERATIONS:
            first, second = _value(left, value_of), _value(right, value_of)
            return None if first is None or second is None else _OPERATIONS[type(op)](first, second)
    raise ValueError("not an integer condition")


def _no_value(name: str) -> int:
    raise ValueError(f"{name} stands for no integer")
