"""A Python function as a reference: its text runs alone, and what it lacks is named."""

import math
from collections.abc import Callable
from typing import Any

import numpy
import numpy as np
import pytest
from numpy import exp as power_of_e

from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.callable_source import (
    Names,
    reference_fields,
    text_fields,
)

FACTOR = 2.0
NAMES = Names(inputs=("x", "a"), outputs=("y",), dimensions=("n",))
INPUTS = {"x": np.arange(4.0), "a": 3.0}


def called(function: Callable[..., Any], names: Names = NAMES) -> Any:
    """What the reference computes, run as the sandbox runs it."""
    fields = reference_fields(function, names)
    held: dict[str, Any] = {"np": np}
    exec(compile(fields["source"], "reference", "exec"), held)
    return held[fields["function"]](dict(INPUTS), {"n": 4})


def in_job_form(inputs: dict[str, Any], dims: dict[str, int]) -> dict[str, Any]:
    """Annotated with a name that is not sent."""
    return {"y": inputs["a"] * inputs["x"] + dims["n"]}


def by_name(x: Any, a: float, n: int) -> Any:
    return a * x + n


def with_names_of_numpy(x: Any) -> Any:
    return power_of_e(numpy.float64(0)) * np.linalg.norm(x) * x


def with_an_inner_function(x: Any, scale: float = 2.0) -> Any:
    import math

    def twice(value: float) -> float:
        return math.floor(scale) * value

    return np.asarray([twice(v) for v in x])


def two(x: Any) -> Any:
    return x + 1, x + 2


def test_a_function_in_the_job_form_is_sent_as_it_is() -> None:
    fields = reference_fields(in_job_form, NAMES)
    assert fields["function"] == "in_job_form"
    assert called(in_job_form)["y"].tolist() == [4, 7, 10, 13]


def test_a_function_may_take_arguments_and_dimensions_by_name() -> None:
    assert called(by_name)["y"].tolist() == [4, 7, 10, 13]
    assert called(with_an_inner_function)["y"].tolist() == [0, 2, 4, 6]


def test_several_outputs_are_returned_in_order() -> None:
    found = called(two, Names(("x",), ("y", "z"), ()))
    assert found["y"].tolist() == [1, 2, 3, 4] and found["z"].tolist() == [2, 3, 4, 5]


def test_numpy_has_the_names_that_the_module_gives_it() -> None:
    assert called(with_names_of_numpy)["y"] == pytest.approx(np.sqrt(14) * INPUTS["x"])


def uses_a_constant(x: Any) -> Any:
    return FACTOR * x


def uses_a_module(x: Any) -> Any:
    return math.e * x


def uses_a_function(x: Any) -> Any:
    return by_name(x, 1, 2)


def misspells(x: Any) -> Any:
    return x * fcator  # type: ignore[name-defined]  # noqa: F821


def takes_a_stranger(x: Any, weights: Any) -> Any:
    return x * weights


def takes_all(*everything: Any) -> Any:
    return everything


def with_a_default(x: Any, factor: float = FACTOR) -> Any:
    return factor * x


def closure() -> Callable[..., Any]:
    scale = 3.0

    def inner(x: Any) -> Any:
        return scale * x

    return inner


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (uses_a_constant, "uses the float FACTOR of its module, which is not sent; define it inside"),
        (with_a_default, "uses the float FACTOR of its module"),
        (uses_a_module, "uses the module math of its module, which is not sent; import it inside"),
        (uses_a_function, "uses the function by_name of its module, which is not sent; define it inside"),
        (misspells, "misspells uses fcator of its module"),
        (takes_a_stranger, r"takes weights, which is no input and no dimension \(x, a, n\)"),
        (takes_all, r"takes \*everything; name the arguments"),
        (closure(), "inner uses scale of the function around it, which is not sent"),
        (lambda x: x, "a lambda has no source of its own"),
        (np.exp, "exp has no Python source of its own"),
    ],
)
def test_what_cannot_be_sent_is_named(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=f"reference: .*{words}"):
        reference_fields(function, NAMES)


def test_a_function_without_a_readable_source_asks_for_its_text() -> None:
    held: dict[str, Any] = {}
    exec("def made(x):\n    return x\n", held)
    with pytest.raises(InvalidInput, match=r"the source of made cannot be read here \(.*\); give its text"):
        reference_fields(held["made"], NAMES)


def test_a_text_calls_its_function_what_it_likes_if_it_is_the_only_one() -> None:
    assert text_fields("def f(inputs, dims):\n    return {}\n")["function"] == "f"
    both = "def helper(x):\n    return x\ndef reference(inputs, dims):\n    return {}\n"
    assert text_fields(both)["function"] == "reference"
    with pytest.raises(InvalidInput, match="the text defines f, g; call the one that counts `reference`"):
        text_fields("def f(): ...\ndef g(): ...\n")
    with pytest.raises(InvalidInput, match=r"the text is not Python: .* in line 1"):
        text_fields("y = = 2")
