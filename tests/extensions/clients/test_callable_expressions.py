"""Functions of a configuration, as users of Triton and Kernel Tuner write them, become expressions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpsmith
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.callable_expressions import FunctionReader

READER = FunctionReader(["BLOCK", "TILE"], {"n": 1000, "m": 24})


def read(function: Callable[..., Any]) -> list[str]:
    """The expressions of a constraint."""
    return READER.expressions("constraints.0", function)


n, LIMIT, SMS, ratio = 1000, 1024, np.int32(132), 0.5
x = np.zeros((24, 1000), np.float32)


class triton:
    """Has the function that grids call."""

    @staticmethod
    def cdiv(a: int, b: int) -> int:
        """Smallest integer not below a / b."""
        return -(-a // b)


cdiv = triton.cdiv


def by_statements(meta: Any) -> Any:
    """A grid that needs a name of its own."""
    per = meta["BLOCK"] * meta["TILE"]
    return (n + per - 1) // per, 1


def by_branches(p: Any) -> Any:
    """A restriction with an early return."""
    if p["TILE"] == 2:
        return p["BLOCK"] > 32
    return True


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (lambda meta: (triton.cdiv(n, meta["BLOCK"]),), ["ceil_div(n, BLOCK)"]),
        (lambda META: (cdiv(x.shape[1], META["BLOCK"]), x.shape[0]), ["ceil_div(n, BLOCK)", "m"]),
        (lambda p: math.ceil(x.size / (p["BLOCK"] * p["TILE"])), ["ceil_div(n * m, BLOCK * TILE)"]),
        (lambda BLOCK, TILE: [-(-n // BLOCK), TILE], ["-(-n // BLOCK)", "TILE"]),
        (lambda p: (min(SMS, n // p["BLOCK"]), len(x)), ["min(132, n // BLOCK)", "m"]),
        (lambda _: 4, ["4"]),
        (by_statements, ["(n + BLOCK * TILE - 1) // (BLOCK * TILE)", "1"]),
    ],
)
def test_a_grid_is_translated(function: Callable[..., Any], texts: list[str]) -> None:
    assert READER.expressions("grid", function) == texts


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda p: p["BLOCK"] * p["TILE"] <= 1024, "BLOCK * TILE <= 1024"),
        (
            lambda BLOCK, TILE: BLOCK * TILE <= LIMIT and BLOCK in (32, 64),
            "BLOCK * TILE <= 1024 and BLOCK in (32, 64)",
        ),
        (lambda p: 1 < p["BLOCK"] * ratio <= n, "1 < BLOCK * 0.5 <= n"),
        (lambda p: p["TILE"] != 3 or p["BLOCK"] % 32 == 0, "TILE != 3 or BLOCK % 32 == 0"),
        (by_branches, "BLOCK > 32 if TILE == 2 else True"),
    ],
)
def test_a_constraint_is_translated(function: Callable[..., Any], text: str) -> None:
    assert read(function) == [text]


def test_two_functions_of_one_line_are_told_apart() -> None:
    both = [lambda p: p["BLOCK"] > 1, lambda p: p["TILE"] > 2]
    assert [read(f) for f in both] == [["BLOCK > 1"], ["TILE > 2"]]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda p: (sum(range(p["BLOCK"])),),
            "is more than arithmetic of the configuration; write an expression as",
        ),
        (
            lambda p: p["BLOCK"] & 1,
            "is more than arithmetic of the configuration; write an expression as text",
        ),
        (eval("lambda p: p['BLOCK']"), "source of this function cannot be read; write an expression as text"),
        (print, "source of this function cannot be read; write an expression as text"),
    ],
)
def test_other_functions_are_refused_with_the_way_out(function: Any, words: str) -> None:
    for field in ("grid", "constraints.0"):
        with pytest.raises(InvalidInput, match=words):
            READER.expressions(field, function)


def test_a_size_around_the_function_is_that_of_the_first_workload() -> None:
    def reads(n: int) -> list[str]:
        return READER.expressions("grid", lambda meta: (cdiv(n, meta["BLOCK"]),))

    assert reads(1000) == ["ceil_div(n, BLOCK)"]
    with pytest.raises(InvalidInput, match="grid: n is 7, and n of the first workload 1000; make them equal"):
        reads(7)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("restrictions", "give constraints"),
        ("timeout", "give seconds"),
        ("tune_params", "give parameters"),
        ("secnods", "give seconds"),
        ("objective", "give fields"),
        ("zzz", "it has kernel, arguments, workloads, grid"),
    ],
)
def test_an_argument_that_tune_does_not_have_is_named_with_the_right_one(given: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        warpsmith.tune("a.cl", **{given: 1})  # type: ignore[arg-type]
    assert caught.value.field == given and f"tune has no such argument; {meant}" in caught.value.message
