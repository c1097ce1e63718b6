"""Branches that are never compiled: they are gone before rules look, and what decided them is not lost."""

import pytest

from tests.extensions.rules.test_production_style import report
from tests.nvrtc_compile import compile_cuda
from warpsmith.domain.device import Backend
from warpsmith.extensions.rules.preparation.dead_branches import without_dead_branches
from warpsmith.extensions.rules.preparation.foreign_platforms import without_foreign_platforms
from warpsmith.source.tree.syntax_tree import Source

SIZED = """
template <typename T, int V, bool WIDE> __global__ void k(const T* x, T* y, int n, int rows) {
  %s
}
"""
LOOP = "for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = x[blockIdx.x * n + i];"


def kept(body: str, entry: str = "k<float, 16, true>") -> str:
    """The kernel's body without dead branches, on one line."""
    text = without_dead_branches(Source(SIZED % body, Backend.CUDA, entry))
    assert text.count("\n") == (SIZED % body).count("\n")
    return " ".join(text[text.index("{", text.index("__global__")) + 1 : text.rindex("}")].split())


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("if constexpr (WIDE) { a(); } else { b(); }", "{ a(); }"),
        ("if constexpr (!WIDE) { a(); } else { b(); }", "{ b(); }"),
        ("if constexpr (!WIDE) { a(); }", "{}"),
        (
            "if constexpr (V == 16) { a(); } else { b(); }",
            '{static_assert(V == 16, ""); a(); }',
        ),
        ("if constexpr (V == 8) a(); else b();", '{static_assert(!(V == 8), ""); b();}'),
        ("if constexpr (V > 32 && unknown) { a(); }", '{static_assert(!(V > 32 && unknown), "");}'),
        ("if constexpr (V % 2 == 0 || WIDE) { a(); }", '{static_assert(V % 2 == 0 || WIDE, ""); a(); }'),
        ("if constexpr (sizeof(T) == V) { a(); }", "if constexpr (sizeof(T) == V) { a(); }"),
        ("if (V == 8) { a(); }", "if (V == 8) { a(); }"),
        ("int V = 1; if constexpr (V == 8) { a(); }", "int V = 1; if constexpr (V == 8) { a(); }"),
    ],
)
def test_numbers_of_the_entry_decide_branches(body: str, left: str) -> None:
    assert kept(body) == left


def test_a_number_that_decided_a_branch_is_not_lifted() -> None:
    body = "if constexpr (V == 16) { " + LOOP + ' } else { asm volatile("trap;"); }'
    found = report(SIZED % body, "k<float, 16, false>")
    assert "vector_width" in {a.rule for a in found.template.applied}, found.declined
    defaults = {p.name: p.baseline_value for p in found.template.space.parameters}
    assert "WS_V" not in defaults
    configured = found.template.configured(defaults | {"WS_VEC": 4})
    assert compile_cuda(configured.source, configured.kernel.entry) == ""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("#ifdef USE_ROCM\na\n#else\nb\n#endif\n", "\n\n\nb\n\n"),
        ("#ifndef USE_ROCM\na\n#endif\n", "\na\n\n"),
        ("#if !defined(USE_ROCM) && defined(X)\na\n#endif\n", None),
        ("#if defined(X) || !defined(__HIP_PLATFORM_AMD__)\na\n#else\nb\n#endif\n", "\na\n\n\n\n"),
        (
            "#if defined(USE_ROCM)\na\n#elif defined(X)\nb\n#else\nc\n#endif\n",
            "\n\n#if defined(X)\nb\n#else\nc\n#endif\n",
        ),
        ("#if defined(X)\na\n#elif defined(USE_ROCM)\nb\n#endif\n", None),
        ("#ifdef X\n#ifdef USE_ROCM\na\n#endif\nb\n#endif\n", "#ifdef X\n\n\n\nb\n#endif\n"),
        ("#ifdef USE_ROCM\n#ifdef X\na\n#endif\n#endif\nb\n", "\n\n\n\n\nb\n"),
        ("#define USE_ROCM\n#ifdef USE_ROCM\na\n#endif\n", None),
        ("#ifdef USE_ROCM\na\n", None),
        ("#if __CUDA_ARCH__ >= 350\na\n#else\nb\n#endif\n", "\na\n\n\n\n"),
        ("#if __CUDA_ARCH__ < 500\na\n#endif\n", "\n\n\n"),
        ("#if __CUDA_ARCH__ >= 800\na\n#else\nb\n#endif\n", None),
        ("#if defined(X) && __CUDA_ARCH__ >= 300\na\n#endif\n", None),
    ],
)
def test_lines_for_other_platforms_are_gone(text: str, left: str | None) -> None:
    assert without_foreign_platforms(text, (), ()) == (text if left is None else left)


def test_what_an_option_or_a_header_defines_is_left() -> None:
    text = "#ifdef USE_ROCM\na\n#endif\n"
    assert without_foreign_platforms(text, ("-DUSE_ROCM=1",), ()) == text
    assert without_foreign_platforms(text, (), ("#define USE_ROCM 1\n",)) == text


def test_a_callee_of_another_platform_is_no_obstacle() -> None:
    lines = "#if defined(USE_ROCM)\n  hip_only(x);\n#else\n  " + LOOP + "\n#endif"
    found = report(SIZED % lines, "k<float, 16, false>")
    assert "row_split" in {a.rule for a in found.template.applied}, found.declined
