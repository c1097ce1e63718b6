"""Expressions: the same value as Python's for what they accept, an error for everything else."""

import ast
import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from testbed.deadlines import stretched
from testbed.repetitions import examples
from warpsmith.domain.expressions import (
    FUNCTIONS,
    MAX_CHARACTERS,
    MAX_MAGNITUDE,
    MAX_NODES,
    Expression,
    Value,
    ceil_div,
    next_pow2,
    round_up,
)
from warpsmith.errors import ExpressionError

SCOPE: dict[str, Value] = {"n": 4096, "BLOCK": 64, "ratio": 0.5, "on": True, "kind": "float4"}
DEVICE: dict[str, Value] = {"device.warp_size": 32, "device.max_shared_per_block": 49152}

numbers = st.one_of(
    st.integers(0, 10**6).map(str),
    st.floats(0, 1e6, allow_nan=False).map(repr),
    st.sampled_from(["n", "BLOCK", "ratio", "on", "True", "False"]),
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Larger expressions from smaller ones, with every operator and function of the language."""
    binary = st.sampled_from(["+", "-", "*", "/", "//", "%", "**"])
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    two = st.sampled_from(["min", "max", "ceil_div", "round_up", "gcd"])
    one = st.sampled_from(["abs", "int", "next_pow2", "sqrt", "-", "+", "not "])
    return st.one_of(
        st.builds("({} {} {})".format, inner, binary, inner),
        st.builds("({} {} {})".format, inner, compare, inner),
        st.builds("({} {} {} {} {})".format, inner, compare, inner, compare, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} {} ({}, {}))".format, inner, st.sampled_from(["in", "not in"]), inner, inner),
        st.builds("{}({}, {})".format, two, inner, inner),
        st.builds("({}({}))".format, one, inner),
    )


texts = st.recursive(numbers, combined, max_leaves=12)


def by_python(text: str) -> Any:
    """What Python makes of a text that the strategy above wrote; the error where it makes none."""
    try:
        return eval(text, {"__builtins__": {}} | dict(FUNCTIONS), dict(SCOPE))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as exc:
        return exc


def nodes(text: str) -> int:
    """Number of parts of an expression."""
    return sum(1 for _ in ast.walk(ast.parse(text, mode="eval").body))


def breaks_a_limit(text: str) -> bool:
    """Whether some part is beyond the limits, or no real number, or no value at all even to Python.

    Parts come before what they are part of, so that Python is never asked for a tower of powers.
    """
    tree = ast.parse(text, mode="eval")
    parts = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and not isinstance(n, ast.Name | ast.Tuple)]
    for part in reversed(parts):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow):
            exponent = by_python(ast.unparse(part.right))
            if not isinstance(exponent, int | float) or abs(exponent) > 64:
                return True
        value = by_python(ast.unparse(part))
        if not isinstance(value, int | float) or not abs(value) <= MAX_MAGNITUDE:
            return True
    return False


@examples(400)
@given(texts)
def test_values_are_those_of_python(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        return
    try:
        got = Expression(text).evaluate(SCOPE)
    except ExpressionError:
        # Python is lazier in one way only: it has no limits.
        assert breaks_a_limit(text) or nodes(text) > MAX_NODES
        return
    want = by_python(text)
    assert type(got) is type(want)
    assert got == want


@examples(200)
@given(texts)
def test_an_expression_survives_json_and_spaces(text: str) -> None:
    if len(text) > MAX_CHARACTERS or nodes(text) > MAX_NODES:
        return
    adapter = TypeAdapter(Expression)
    expression = Expression(f"  {text} \n ")
    again = adapter.validate_json(adapter.dump_json(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert again.names == expression.names <= {"n", "BLOCK", "ratio", "on"}


@examples(600)
@given(st.one_of(st.text(max_size=80), st.text("()[]{}.,:=+-*/%<>!'\"\\ \n\0axn019_fl", max_size=80)))
def test_any_text_gives_a_value_or_an_expression_error(text: str) -> None:
    try:
        value = Expression(text).evaluate(SCOPE)
    except ExpressionError as exc:
        assert exc.message
        return
    assert isinstance(value, int | float | str)


HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__bases__",
    "n.real",
    "n.__class__",
    "a.b.c",
    "''.join('x')",
    "(lambda: 1)()",
    "lambda: 1",
    "[x for x in (1, 2)]",
    "{1: 2}",
    "{1, 2}",
    "n[0]",
    "(1, 2)[0]",
    "f'{n}'",
    "b'x'",
    "1j",
    "None",
    "...",
    "(n := 3)",
    "await n",
    "yield",
    "max(*(1, 2))",
    "max(1, 2, key=abs)",
    "max(**{})",
    "eval('1')",
    "pow(2, 3)",
    "print(1)",
    "n @ n",
    "n << 3",
    "n >> 3",
    "n & 1",
    "n | 1",
    "n ^ 1",
    "~n",
    "n is n",
    "n is not n",
    "n; n",
    "n = 3",
    "import os",
    "",
    "   ",
    "\0",
    "n\0",
    "1 +",
    "((((",
    "ceil_div",
    "\ud800",
    "\u202en",
    "n\u00b2",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_everything_outside_the_language_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text).evaluate(SCOPE)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "(2**63)**64 * (2**63)**64",
        "n ** 65",
        "2 ** -65",
        "1e999",
        "-1e999",
        "1e999 - 1e999",
        "9" * 400,
        "1e308 * 10",
        "(-8) ** 0.5",
        "(1,) * 10**9",
        "10**9 * (1, 2)",
        "(1, 2) + (3,)",
        "'a' * 10**9",
        "'%s' % n",
        "-'a'",
        "'a' < 1",
        "1 in 2",
        "sqrt(-1)",
        "gcd(0.5, 2)",
        "int('x')",
        "ceil_div(n)",
        "max()",
        "max(1, 'a')",
        "(1, 2)",
        "[n]",
        "min(())",
    ],
)
def test_a_value_that_is_no_number_or_too_large_is_an_error(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(ExpressionError):
        Expression(text).evaluate(SCOPE)
    assert time.monotonic() - began < stretched(1)


@pytest.mark.parametrize(
    "text", ["n / 0", "n // 0", "n % 0", "ceil_div(n, 0)", "0 ** -1", "round_up(1, n - n)"]
)
def test_division_by_zero_says_so(text: str) -> None:
    with pytest.raises(ExpressionError, match="divides by zero"):
        Expression(text).evaluate(SCOPE)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: "(" * n + "1" + ")" * n,
        lambda n: "-" * n + "1",
        lambda n: "not " * n + "1",
        lambda n: "abs(" * n + "1" + ")" * n,
        lambda n: "+".join(["1"] * n),
        lambda n: "1 if " * n + "1" + " else 1" * n,
        lambda n: "[" * n + "]" * n,
    ],
)
def test_deep_nesting_is_an_error_and_no_crash(build: Callable[[int], str]) -> None:
    for depth in (100, 249, 100_000):
        text = build(depth)
        try:
            value = Expression(text).evaluate({})
        except ExpressionError:
            continue
        assert value in (1, 0, -1, 100), text[:40]
    with pytest.raises(ExpressionError):
        Expression(build(100_000))


def test_limits_are_exact() -> None:
    assert Expression("1" + " +1" * 0 + "0" * (18)).evaluate({}) == 10**18
    assert Expression(str(MAX_MAGNITUDE)).evaluate({}) == MAX_MAGNITUDE
    with pytest.raises(ExpressionError, match=r"beyond 2\^63"):
        Expression(str(MAX_MAGNITUDE + 1)).evaluate({})
    assert Expression("1 or " * 99 + "0").evaluate({}) == 1
    with pytest.raises(ExpressionError, match=f"1 to {MAX_CHARACTERS} characters"):
        Expression("n" * (MAX_CHARACTERS + 1))
    assert Expression("n" * MAX_CHARACTERS).names == {"n" * MAX_CHARACTERS}


def test_names_of_the_scope_are_bounded_too() -> None:
    with pytest.raises(ExpressionError, match=r"beyond 2\^63"):
        Expression("BLOCK").integer({"BLOCK": 10**400})
    with pytest.raises(ExpressionError, match=r"beyond 2\^63"):
        Expression("BLOCK").integer({"BLOCK": math.inf})


def test_unknown_names_are_told_with_the_known_ones() -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression("hiden * 2").evaluate({"hidden": 1, "BLOCK": 2})
    assert caught.value.message == "in expression 'hiden * 2': unknown name 'hiden' (known: BLOCK, hidden)"
    with pytest.raises(ExpressionError, match=r"\(known: none\)"):
        Expression("n").evaluate({})


def test_device_names_have_one_dot() -> None:
    expression = Expression("min(device.max_shared_per_block // 4, n) % device.warp_size")
    assert expression.names == {"device.max_shared_per_block", "device.warp_size", "n"}
    assert expression.evaluate(SCOPE | DEVICE) == 0
    with pytest.raises(ExpressionError, match=r"unknown name 'device.secret'"):
        Expression("device.secret").evaluate(DEVICE)


def test_words_compare_and_do_nothing_else() -> None:
    assert Expression("kind == 'float4'").evaluate(SCOPE) is True
    assert Expression("kind in ('float2', 'float4')").evaluate(SCOPE) is True
    assert Expression("kind").evaluate(SCOPE) == "float4"
    with pytest.raises(ExpressionError, match="not a whole number"):
        Expression("kind").integer(SCOPE)


def test_a_branch_that_is_not_taken_is_not_evaluated() -> None:
    assert Expression("1 if on else n // 0").evaluate(SCOPE) == 1
    assert Expression("on or n // 0").evaluate(SCOPE) is True
    assert Expression("not on and n // 0").evaluate(SCOPE) is False
    assert Expression("1 < 0 < n // 0").evaluate(SCOPE) is False


@pytest.mark.parametrize(
    ("text", "value"),
    [("ceil_div(n, 1000)", 5), ("n / 2", 2048), ("on", 1), ("6.0", 6), (256, 256), (-4, -4)],
)
def test_whole_numbers(text: str | int, value: int) -> None:
    got = Expression(text).integer(SCOPE)
    assert (got, type(got)) == (value, int)


@pytest.mark.parametrize("text", ["ratio", "n / 3", "kind", "1e999", "(-8) ** 0.5"])
def test_other_numbers_are_not_whole(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text).integer(SCOPE)


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_rounding_functions(a: int, b: int) -> None:
    assert ceil_div(a, b) == math.ceil(a / b)
    assert round_up(a, b) % b == 0
    assert 0 <= round_up(a, b) - a < b
    power = next_pow2(a)
    assert power & (power - 1) == 0
    assert power >= a
    assert power == 1 or power // 2 < a


def test_json_keeps_whole_numbers_as_numbers() -> None:
    adapter = TypeAdapter(Expression)
    assert adapter.dump_json(Expression(256)) == b"256"
    assert adapter.dump_json(Expression("n * 2")) == b'"n * 2"'
    for bad in ("null", "[1]", "{}", '"1 +"', "1e999"):
        with pytest.raises((ValidationError, ExpressionError)):
            adapter.validate_json(bad).evaluate({})


def test_equality_is_of_the_text() -> None:
    assert Expression("a +  b") == Expression("a + b")
    assert Expression("a + b") != Expression("b + a")
    assert Expression("1") != "1"
    assert repr(Expression("a")) == "Expression('a')"
    assert str(Expression(" a ")) == "a"
