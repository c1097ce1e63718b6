"""Operators, functions and methods that a Python text may use where it is evaluated."""

import ast
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from warpsmith.domain.expressions import BINARY, COMPARE

METHODS: Mapping[type, frozenset[str]] = {
    dict: frozenset("get items keys values copy update pop setdefault clear".split()),  # noqa: SIM905
    list: frozenset("append extend insert remove pop index count copy sort reverse clear".split()),  # noqa: SIM905
    str: frozenset("upper lower strip split startswith endswith".split()),  # noqa: SIM905
}
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    **BINARY,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **COMPARE,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
_SIZES = (min, max, len, int, bool, abs, sum, float, str, round, any, all)
_MATH = (math.ceil, math.floor, math.log2, math.sqrt, math.prod, math.gcd)
_SERIES = (list, tuple, sorted, dict, set)
LAZY = (range, itertools.product, zip, enumerate, reversed)
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (*_SIZES, *_MATH, *_SERIES, *LAZY)},
    "OrderedDict": dict,
    "constexpr": lambda a: a,
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda a: 1 << max(int(a) - 1, 0).bit_length(),
}
