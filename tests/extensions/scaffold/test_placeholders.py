"""Code templates are declined by the name of a placeholder; C that looks alike is not."""

from pathlib import Path

import pytest

from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.extensions.scaffold.reading.placeholders import first_placeholder


@pytest.mark.parametrize(
    ("text", "placeholder"),
    [
        ("__kernel void f(__global %TYPE *x) {}", "%TYPE"),
        ("__kernel void %PREFIXf(int n) {}", "%PREFIXf"),
        ("x = y + 1;\n  %VLOAD(x);", "%VLOAD"),
        ("__kernel void f(__global @TYPE@ *x) {}", "@TYPE@"),
        ("__kernel void f(__global {{ type }} *x) {}", "{{ type }}"),
        ("__kernel void f_{{dtype|lower}}(int n) {}", "{{dtype|lower}}"),
        ("{% for i in range(4) %}\nx[i] = 1;", "{% for i in range(4) %}"),
        ("__kernel void f(__global $(TYPE) *x) {}", "$(TYPE)"),
        ("float x = ${value};", "${value}"),
    ],
)
def test_placeholders_are_found(tmp_path: Path, text: str, placeholder: str) -> None:
    found = first_placeholder(f"\n{text}")
    assert found is not None
    assert found.text == placeholder
    source = tmp_path / "t.cl"
    source.write_text(f"// %TYPE is explained here\n{text}\n")
    with pytest.raises(InvalidInput) as raised:
        scaffold([source], tmp_path / "job.yaml", InitOptions())
    assert raised.value.message.startswith(
        f"t.cl (line {2 + text[: text.index(placeholder)].count(chr(10))}): "
    )
    assert f"{placeholder} is a placeholder" in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "int a = b %N + c[i] %M - f(x) %K;",
        "int a = i++ %N;",
        "x %= n; y = (a) %n;",
        "int a[1][1] = {{zero}};",
        "float2 v[2] = {{a, b}, {c, d}};",
        "std::array<int, 2> v{{x, y}}; array<int, 1> w{{x}};",
        'asm("mov.u32 %r1, $(x) @p@;"); printf("(%TYPE {{x}} ");',
        "// @TYPE@ {{x}} y\n/* ${x} */ int $x = 1;",
        "@p bra done; a@b",
    ],
)
def test_c_is_no_template(text: str) -> None:
    assert first_placeholder(text) is None
