"""Uses of macros are written out as a preprocessor would, or not at all."""

import shutil
import subprocess

import pytest

from warpsmith.domain.device import Backend
from warpsmith.source.tree.syntax_tree import Source
from warpsmith.source.tree.written_out import written_out

HEAD = "__kernel void k(__global float *x, int n) {"


def made(
    text: str,
    body: str,
    *,
    options: tuple[str, ...] = (),
    own: tuple[str, ...] = (),
    headers: tuple[str, ...] = (),
) -> str:
    """The body of a kernel after the macros before it were written out."""
    whole = f"{text}\n{HEAD}{body}}}\n"
    found = written_out(Source(whole, Backend.OPENCL, "k", headers), options, own).text
    assert found.count("\n") == whole.count("\n")
    return found.split(HEAD)[1].rsplit("}", 1)[0]


@pytest.mark.parametrize(
    ("text", "body", "wanted"),
    [
        ("#define I get_global_id(0)", "x[I] = 1;", "x[get_global_id(0)] = 1;"),
        ("#define I(a, b) ((a)+n*(b))", "x[I(1, n + 1)] = 1;", "x[((1)+n*(n + 1))] = 1;"),
        ("#define SET(c, a) c = a", "SET(x[0], x[1] * 2);", "x[0] = x[1] * 2;"),
        ("#define F(a) a*a", "x[0] = F(n + 1);", "x[0] = n + 1*n + 1;"),
        ("#define F(a) (a)\n#define G(a) F(a+1)", "x[0] = G(F(n));", "x[0] = ((n)+1);"),
        ("#define F(a) -a", "x[0] = F(-n);", "x[0] = - -n;"),
        ("#define F(a) a##_x", "int n_x = 1; x[0] = F(n);", "int n_x = 1; x[0] = n_x;"),
        ("#define F(a, b) a = b;", "F(x[0],\n\n 1) n;", "x[0] = 1;\n\n n;"),
        ("#define F(a) ({ a; })", "F(x[0] = (1, 2));", "({ x[0] = (1, 2); });"),
        ("#define M F\n#define F(a) x[a]", "M(n) = 1;", "x[n] = 1;"),
        ("#define I x[0]\n#undef I\n#define I x[1]", "I = 1;", "x[1] = 1;"),
        ("#define P 2\n#if P == 1\n#define I x[0]\n#else\n#define I x[1]\n#endif", "I = 1;", "x[1] = 1;"),
        ("#define F(a) \\\n  x[a]", "F(n) = 1; // F(n)\n", "x[n] = 1; // F(n)\n"),
        ("#define F(...) max(__VA_ARGS__)", "x[0] = F(n, 1);", "x[0] = max(n, 1);"),
        ("#define real double", "real r = 1;", "double r = 1;"),
        ("#define F() x[0]", "F() = 1;", "x[0] = 1;"),
    ],
)
def test_a_use_is_written_out(text: str, body: str, wanted: str) -> None:
    assert made(text, body) == wanted


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("#define N 16", "x[N] = 1;"),
        ("#define N (16 * M)\n#define M 2", "x[N] = 1;"),
        ("#define F(a) x[a] = F", "F(0);"),
        ("#define I (I + x[0])", "int I = 0; x[1] = I;"),
        ("#define F(a) #a", "x[0] = sizeof(F(n));"),
        ("#define F(a) a##_x", "F;"),
        ("#define F(a, b) a = b", "F(x[0]);"),
        ("#ifdef cl_khr_fp64\n#define I x[0]\n#else\n#define I x[1]\n#endif", "I = 1;"),
        ("#ifdef cl_khr_fp64\n#define I x[0]\n#endif", "I = 1;"),
        ("#define I x[0]\n#ifdef cl_khr_fp64\n#undef I\n#endif", "I = 1;"),
        ("#define F(a) G(a)\n#define G(a) a##1\n#define N 2", "int n21 = 0; x[0] = F(N);"),
        ("#define I(a) x[a]\n#define LINE I(__LINE__)", "LINE = 1;"),
    ],
)
def test_a_use_stays(text: str, body: str) -> None:
    lines = made(text, body)
    assert lines == body or "LINE" in body


def test_parameters_and_given_macros_stay() -> None:
    text = "#define I get_global_id(AXIS)\n#define AXIS f(0)\n#define B(a) a[0]"
    assert made(text, "x[I] = B(x);", own=("B",), options=("-DAXIS=0",)) == "x[get_global_id(AXIS)] = B(x);"
    chosen = "#ifndef I\n#define I x[0]\n#endif"
    assert made(chosen, "I = 1;") == "x[0] = 1;"
    assert made(chosen, "I = 1;", options=("-DI=x[1]",)) == "I = 1;"
    assert made("#if P == 1\n#define I x[0]\n#endif", "I = 1;", options=("-DP=1",)) == "x[0] = 1;"
    assert made("#if P == 1\n#define I x[0]\n#endif", "I = 1;", own=("P",)) == "I = 1;"


def test_uses_between_definitions_follow_the_one_before_them() -> None:
    body = "I = 1;\n#undef I\n#define I x[1]\nI = 2;\n#undef I\nint I;\n"
    wanted = "x[0] = 1;\n#undef I\n#define I x[1]\nx[1] = 2;\n#undef I\nint I;\n"
    assert made("#define I x[0]", body) == wanted


def test_a_macro_of_a_branch_is_written_out_in_it_alone() -> None:
    body = "\n#ifdef cl_khr_fp64\n#define I x[0]\nI = 1;\n#else\nint I;\n#endif\n"
    assert "x[0] = 1;" in made("", body)
    assert "int I;" in made("", body)


def test_a_header_gives_macros_if_it_alone_defines_them() -> None:
    header = "#ifndef _COMMON_H_\n#define _COMMON_H_\n#define I(i) ((i)+1)\n#endif"
    assert made('#include "common.h"', "x[I(n)] = 1;", headers=(header,)) == "x[((n)+1)] = 1;"
    assert made('#include "common.h"', "x[I(n)] = 1;", headers=(header, header)) == "x[I(n)] = 1;"
    both = "#define I(i) (i)"
    assert made(f'{both}\n#include "a.h"', "x[I(n)] = 1;", headers=(both,)) == "x[(n)] = 1;"


def test_a_header_does_not_know_what_another_one_defined_before_it() -> None:
    first, second = "#define WIDE 1", "#ifdef WIDE\n#define I(i) (i)\n#else\n#define I(i) ((i)+1)\n#endif"
    assert made('#include "a.h"\n#include "b.h"', "x[I(n)] = 1;", headers=(first, second)) == "x[I(n)] = 1;"


def test_a_function_that_a_macro_calls_has_its_macros_written_out_too() -> None:
    text = "#define SET(a) a = 1\nvoid f(__global float *x) { SET(*x); }\n#define CALL f(x)"
    whole = f"{text}\n{HEAD}CALL;}}\n"
    found = written_out(Source(whole, Backend.OPENCL, "k"), (), ()).text
    assert "f(__global float *x) { *x = 1; }" in found
    assert f"{HEAD}f(x);" in found


@pytest.mark.skipif(shutil.which("cpp") is None, reason="no preprocessor of C")
def test_a_preprocessor_makes_the_same_of_both() -> None:
    text = """#define A(x, y) B(x) + C(y, x)
#define B(x) (x[0]) - D
#define C(a, b) a ## 1 * b[E]
#define D get_global_id(0)
#define E D / 2
#define LOOP(i) for (int i = 0; i < n; i++) { x[i] = A(x, q); }
#define SELF(a) SELF(a) + x[a]
#define MANY(f, ...) f(__VA_ARGS__)
#define PAIR(a, b) a = b; b = a
"""
    body = "int q1 = 3; LOOP(i) LOOP(j)\n MANY(PAIR, x[0], x[E]);\n x[2] = A(x, q) -A(x,q);\n x[3] = D-D- -D;"
    whole = f"{text}{HEAD}{body}}}\n"
    found = written_out(Source(whole, Backend.OPENCL, "k"), (), ()).text
    assert "LOOP(" not in found.split(HEAD)[1]

    def preprocessed(source: str) -> list[str]:
        run = subprocess.run(
            ["cpp", "-P", "-undef"], input=source, capture_output=True, text=True, check=True
        )
        return list("".join(run.stdout.split()))

    assert preprocessed(found) == preprocessed(whole)
