"""Sizes of examples as expressions over dimensions: found if there is one, and else asked for."""

import pytest

from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.python.extents import products, scalar_value, shape_of


@pytest.mark.parametrize(
    ("number", "dimensions", "found"),
    [
        (8, {"m": 8, "n": 16}, ["m"]),
        (8, {"m": 8, "n": 8}, ["m", "n"]),
        (128, {"m": 8, "n": 16}, ["m * n"]),
        (16, {"m": 8, "n": 16, "k": 2}, ["n"]),
        (64, {"m": 8}, ["m * m"]),
        (64, {"m": 2048, "n": 8}, []),
        (105, {"a": 3, "b": 5, "c": 7}, ["a * b * c"]),
        (24, {"a": 2, "b": 12, "c": 4, "d": 6}, ["a * b", "c * d"]),
        (9, {"m": 8}, []),
        (1, {"m": 8}, []),
        (1, {"m": 8, "batch": 1}, ["batch"]),
    ],
)
def test_the_likeliest_kind_of_product_counts(
    number: int, dimensions: dict[str, int], found: list[str]
) -> None:
    assert products(number, dimensions) == found


def test_a_shape_has_the_names_of_its_extents() -> None:
    sizes = {"rows": 6, "columns": 10}
    assert shape_of("x", (6, 10), sizes) == ["rows", "columns"]
    assert shape_of("x", (60,), sizes) == ["rows * columns"]
    assert shape_of("x", (10, 1), sizes) == ["columns", "1"]


@pytest.mark.parametrize(
    ("extents", "shape"),
    [((6, 4), ["n", "4"]), ((24,), ["4 * n"]), ((6,), ["n"])],
)
def test_vectors_are_counted_in_numbers(extents: tuple[int, ...], shape: list[str]) -> None:
    assert shape_of("x", extents, {"n": 6}, lanes=4) == shape


def test_an_ambiguous_extent_names_argument_extent_and_fix() -> None:
    with pytest.raises(InvalidInput) as refused:
        shape_of("x", (8, 8), {"rows": 8, "columns": 8})
    assert refused.value.field == "arguments.x"
    assert refused.value.message == (
        "extent 8 (axis 0 of (8, 8)) is rows and columns alike; write "
        "{\"example\": ..., \"shape\": ['rows', 'columns']} with the expressions that you mean, or an "
        "example and a first workload of which no two sizes are equal"
    )


def test_an_extent_without_a_dimension_names_argument_extent_and_fix() -> None:
    with pytest.raises(InvalidInput) as refused:
        shape_of("taps", (6, 9), {"n": 6})
    assert refused.value.field == "arguments.taps"
    assert refused.value.message == (
        "extent 9 (axis 1 of (6, 9)) is no dimension of the first workload (n=6); write "
        "{\"example\": ..., \"shape\": ['n', '9']} with the expressions that you mean"
    )


def test_a_scalar_with_the_value_of_one_dimension_is_it() -> None:
    sizes = {"m": 8, "n": 16, "batch": 1}
    assert scalar_value("lda", 16, sizes) == "n"
    assert scalar_value("total", 128, sizes) == "m * n"
    assert scalar_value("flag", 1, sizes) == "1"
    assert scalar_value("taps", 9, sizes) == "9"
    assert scalar_value("offset", -3, sizes) == "-3"


def test_a_scalar_with_the_value_of_two_dimensions_is_asked_for() -> None:
    with pytest.raises(
        InvalidInput, match=r"arguments\.lda: 8 is m and n alike; write .* such as 'm', or '8'"
    ):
        scalar_value("lda", 8, {"m": 8, "n": 8})
