"""What is taken out of a user's Python file, and what is refused."""

import pytest

from warpsmith.extensions.triton.backend.module import NotSelfContained, kernel_module

FILE = """import os
import torch
import triton
import triton.language as tl
from torch import nn

SCALE = tl.constexpr(2.5)
os.environ["SEEN"] = "1"


@triton.jit
def twice(x):
    return x * SCALE


class Op(nn.Module):
    pass


def grid(meta):
    return (meta["BLOCK"],)


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), os.getpid()], key=["n"])
@triton.jit(do_not_specialize=["n"], launch_metadata=grid)
def kernel(x, y, n, BLOCK: tl.constexpr = 128):
    torch = tl.arange(0, BLOCK)
    tl.store(y + torch, twice(tl.load(x + torch, mask=torch < n)), mask=torch < n)
"""


def test_only_the_kernel_and_what_it_reaches_is_left() -> None:
    text = kernel_module(FILE, "kernel")
    assert "os." not in text and "torch import" not in text and "autotune" not in text
    assert "import torch" not in text and "class Op" not in text and "def grid" not in text
    assert "SCALE = tl.constexpr(2.5)" in text and "def twice" in text
    assert "@triton.jit(do_not_specialize=['n'])\ndef kernel" in text


def test_lines_keep_their_numbers() -> None:
    lines = kernel_module(FILE, "kernel").splitlines()
    assert all(
        not line or line == FILE.splitlines()[n] or line.startswith("@") for n, line in enumerate(lines)
    )
    assert lines.index("    return x * SCALE") == FILE.splitlines().index("    return x * SCALE")


@pytest.mark.parametrize(
    ("head", "imported"),
    [
        ("import triton as t\nimport triton.language as tl\n", "t.jit"),
        ("from triton import jit, language as tl\n", "jit"),
        (
            "try:\n    import triton\n    import triton.language as tl\nexcept ImportError:\n    pass\n",
            "triton.jit",
        ),
        ("if True:\n    import triton\n    import triton.language as tl\n", "triton.jit"),
    ],
)
def test_triton_goes_by_whatever_name_it_was_imported(head: str, imported: str) -> None:
    text = kernel_module(f"{head}\n@{imported}\ndef k(x):\n    tl.store(x, 1)\n", "k")
    assert f"@{imported}\ndef k(x):" in text and "import" in text
    compile(text, "kernel.py", "exec")


@pytest.mark.parametrize(
    ("body", "head", "reason"),
    [
        ("tl.store(x, helper(1))", "def helper(a):\n    return a\n", "helper is no @triton.jit function"),
        ("tl.store(x, exp(1.0))", "from fla.ops import exp\n", "exp comes from fla"),
        ("tl.store(x, LIMIT)", "LIMIT = open('/etc/passwd').read()\n", "LIMIT is no constant"),
        ("tl.store(x, LIMIT)", "LIMIT = [n for n in range(9)]\n", "LIMIT is no constant"),
        ("tl.store(x, LIMIT)", "LIMIT = tl.constexpr(__import__('os').getpid())\n", "LIMIT is no constant"),
        ("tl.store(x, LIMIT)", "LIMIT = tl.core.__builtins__\n", "LIMIT is no constant"),
        ("tl.store(x, LIMIT)", "LIMIT = 'a' * 9999999999999\n", "LIMIT is no constant"),
        ("tl.store(x, C)", "class C:\n    pass\n", "C is a class"),
        ("tl.store(x, LIMIT)", "LIMIT = 4; import os\n", "has several statements"),
        ("tl.store(x, tanh(1))", "from triton.language import *\nfrom math import *\n", ""),
    ],
)
def test_what_is_neither_a_constant_nor_a_kernel_is_refused_with_its_line(
    body: str, head: str, reason: str
) -> None:
    text = f"import triton\nimport triton.language as tl\n{head}\n@triton.jit\ndef k(x):\n    {body}\n"
    if not reason:
        assert "tanh" in kernel_module(text, "k"), "the compiler says what it does not know"
        return
    with pytest.raises(NotSelfContained, match=f"line [0-9]+: (.* )?{reason}"):
        kernel_module(text, "k")


def test_defaults_and_annotations_of_a_kernel_are_constants() -> None:
    text = "import triton\nimport os\n@triton.jit\ndef k(x, n=os.getpid()):\n    pass\n"
    with pytest.raises(NotSelfContained, match="in its head"):
        kernel_module(text, "k")


def test_an_entry_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(NotSelfContained, match=r"function other; it has: twice, grid, kernel"):
        kernel_module(FILE, "other")
    with pytest.raises(ValueError, match="is no Python"):
        kernel_module("def k(:\n", "k")
