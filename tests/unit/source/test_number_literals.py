"""Number literals of C in constants and in conditions."""

import pytest

from warpsmith.source.declarations.named_constants import find_constants, integer_value
from warpsmith.source.lexing.conditionals import decided, holds
from warpsmith.source.lexing.number_literals import integer_literal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("00", 0),
        ("0777", 511),
        ("08", None),
        ("0x", None),
        ("0x1Fu", 31),
        ("0b101", 5),
        ("1'000ull", 1000),
        ("12LU", 12),
        ("1e3", None),
        ("1.", None),
        ("4f", None),
        ("12lul", None),
    ],
)
def test_integers(text: str, value: int | None) -> None:
    assert integer_literal(text) == value


@pytest.mark.parametrize("text", ["1e-08", "1.e-08f", "1e+05", "08", "0x", "1e-08 * 4", ".5e-08", "0x1p-08"])
def test_a_constant_that_is_no_integer_is_left_out(text: str) -> None:
    assert find_constants(f"#define EPS {text}\n#define TILE 010\n") == find_constants("\n#define TILE 010\n")
    assert integer_value(text, {}) is None


def test_octal_constants_have_the_value_of_c() -> None:
    assert [c.value for c in find_constants("#define MODE (0777 + 0x10)\n")] == [527]
    assert holds("if", "MODE == 010", {"MODE": "8"})
    assert decided("N < 010", {"N": 9}.get) is False
    assert not holds("if", "08", {})
