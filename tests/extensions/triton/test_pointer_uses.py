"""Roles of parameters, from what a function loads and stores."""

import pytest

from warpsmith.domain.kernels.triton_function import read_kernels
from warpsmith.extensions.triton.jobs.pointer_uses import pointer_uses, whole_rows

HEADER = "import triton\nimport triton.language as tl\n"


def used(body: str, arguments: str = "a, b, n, stride") -> tuple[set[str], set[str], set[str]]:
    """Parameters that the first function of a file reads, writes and changes at once."""
    rows = "\n".join(f"    {row}" for row in body.strip("\n").split("\n"))
    functions = read_kernels(f"{HEADER}@triton.jit\ndef f({arguments}, B: tl.constexpr):\n{rows}\n{HELPERS}")
    found = pointer_uses(functions[0], {f.name: f for f in functions})
    return set(found.read), set(found.written), set(found.atomic)


HELPERS = """
@triton.jit
def put(where, value):
    tl.store(where, value)
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("tl.store(b + n, tl.load(a + n))", ({"a"}, {"b"}, set())),
        ("p = a + n * stride\np += B\ntl.store(p, tl.load(p))", ({"a"}, {"a"}, set())),
        ("o = n + tl.arange(0, B)\ntl.store(o + b, 0, mask=o < n)", (set(), {"b"}, set())),
        ("tl.atomic_add(a + n, tl.load(b))", ({"b"}, set(), {"a"})),
        (
            "p = tl.make_block_ptr(base=a, shape=(n,), strides=(1,), offsets=(0,),\n"
            "                      block_shape=(B,), order=(0,))\n"
            "p = tl.advance(p, (B,))\ntl.store(b, tl.load(p))",
            ({"a"}, {"b"}, set()),
        ),
        (
            "d = tl.make_tensor_descriptor(a, [n], [1], [B])\n"
            "e = tl.make_tensor_descriptor(b, [n], [1], [B])\n"
            "e.store([0], d.load([0]))",
            ({"a"}, {"b"}, set()),
        ),
        ("put(b + n, tl.load(a))", ({"a"}, {"b"}, set())),
        ("a, b = a + n, b + n\ntl.store(a, tl.load(b))", ({"b"}, {"a"}, set())),
    ],
)
def test_addresses_lead_back_to_parameters(body: str, wanted: tuple[set[str], set[str], set[str]]) -> None:
    assert used(body) == wanted


def test_masks_name_the_sizes_of_what_they_guard() -> None:
    text = (
        f"{HEADER}@triton.jit\ndef f(a, b, n, m, B: tl.constexpr):\n"
        "    at = tl.arange(0, B)\n    inside = at < m\n"
        "    tl.store(b + at, tl.load(a + at, mask=at < n), mask=inside)\n"
    )
    found = pointer_uses(read_kernels(text)[0], {})
    assert found.bounds == {"a": {"n"}, "b": {"m"}}


@pytest.mark.parametrize(
    ("offset", "wanted"), [("tl.arange(0, B)", {"B": "n"}), ("tl.program_id(0) * B + tl.arange(0, B)", {})]
)
def test_a_tile_that_holds_a_whole_row_is_told_from_one_that_is_repeated(
    offset: str, wanted: dict[str, str]
) -> None:
    text = (
        f"{HEADER}@triton.jit\ndef f(a, b, n, B: tl.constexpr):\n    at = {offset}\n    mask = at < n\n"
        "    tl.store(b + at, tl.load(a + at, mask), mask)\n"
    )
    assert whole_rows(read_kernels(text)[0]) == wanted


def test_jit_is_triton_s_by_whichever_name_it_is_imported() -> None:
    body = "def {}(x):\n    pass\n"
    text = (
        "import numba, triton as t\nfrom triton import jit as compiled\n"
        f"@numba.jit\n{body.format('other')}@compiled\n{body.format('one')}"
        f"@t.jit(do_not_specialize=['x'])\n{body.format('two')}"
    )
    assert [f.name for f in read_kernels(text)] == ["one", "two"]
