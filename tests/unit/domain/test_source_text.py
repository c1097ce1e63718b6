"""What is read off the code of a source, whatever its language."""

import pytest

from warpsmith.domain.source_text import uses_atomics


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        ("atomicAdd(&y[0], part);", True),
        ("atom_add(y, 1);", True),
        ("old = atomic_cmpxchg(p, a, b);", True),
        ("tl.atomic_add(pointer, value)", True),
        ("__atomic_fetch_add(p, 1, 0);", True),
        ("float atoms = 1.0f; int atomicity = 2;", False),
        ("y[0] = part; // atomicAdd(&y[0], part)", False),
    ],
)
def test_atomics_are_named_in_code(code: str, uses: bool) -> None:
    assert uses_atomics(code) is uses
