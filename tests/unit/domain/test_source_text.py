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
        ("#define add(p, v) \\\n  atomicAdd(p, v)\ny[0] = part;", False),
        ("#define add(p, v) \\\n  atomicAdd(p, v)\nadd(y, part);", True),
        ("#define atomic_add(p, v) atomicAdd(p, v)\natomic_add(y, part);", True),
        ("#define add atomicAdd\n#define twice(p) add(p, 2)\ntwice(y);", True),
    ],
)
def test_atomics_are_named_in_code(code: str, uses: bool) -> None:
    assert uses_atomics(code) is uses
