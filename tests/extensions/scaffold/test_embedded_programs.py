"""`init` on files that hold device code as text: the program of the wanted kernel, and no other."""

from pathlib import Path

import pytest

from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.errors import InvalidInput
from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.job_files.jobfile import load_job
from warpsmith.source.kernels.host_strings import host_strings, only_literals

ONE = "__kernel void one(__global real *x) {\n    x[get_global_id(0)] = 1;\n}\n"
TWO = "#error only for two\n__kernel void two(__global real *x) {\n    x[0] = 2;\n}\n"
HOST = f"""// programs "of a host"
std::string Programs::common = R"%%(typedef float real;
)%%";

std::string Programs::one = Programs::common + R"%%(
{ONE})%%";
std::string Programs::two = Programs::common + std::string(R"%%(
{TWO})%%");
"""


def kernel_of(folder: Path, texts: dict[str, str], entry: str | None) -> tuple[Kernel, str]:
    """The kernel of the job that `init` writes for these files, and the job file's first line."""
    paths = [folder / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    target = folder / "job.yaml"
    target.write_text(scaffold(paths, target, InitOptions(entry=entry)))
    return load_job(target).kernel, target.read_text().split("\n", 1)[0]


def test_only_the_program_of_the_kernel_is_taken_with_what_is_joined_to_it(tmp_path: Path) -> None:
    kernel, first = kernel_of(tmp_path, {"host.cpp": HOST}, "one")
    assert kernel.text == f"typedef float real;\n\n{ONE}"
    line = HOST.split("\n").index(ONE.split("\n", maxsplit=1)[0]) + 1
    assert first == f"# Job for the kernel one of host.cpp (line {line})."
    assert "#error" in kernel_of(tmp_path, {"host.cpp": HOST}, "two")[0].text


def test_several_programs_without_an_entry_are_listed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="defines 2 kernels; name one of one, two"):
        kernel_of(tmp_path, {"host.cpp": HOST}, None)
    with pytest.raises(InvalidInput, match=r"three: 0 such kernels .* it has one, two"):
        kernel_of(tmp_path, {"host.cpp": HOST}, "three")


def test_what_a_host_joins_by_names_alone_counts_through_its_literals(tmp_path: Path) -> None:
    host = f'char* a = "typedef float real;\\n";\nchar* b = R"({ONE})";\nauto s = "int z;\\n" + a + b;\n'
    kernel, _ = kernel_of(tmp_path, {"host.cpp": host}, None)
    assert kernel.text == f"int z;\ntypedef float real;\n{ONE}"


def test_a_file_that_is_one_literal_is_device_code_without_a_kernel_too(tmp_path: Path) -> None:
    note = "// Lets host code include this file as a string.\n"
    files = {
        "common.opencl": f'{note}R"(\n// clang-format on\ntypedef float real;\n)"\n// end of "it"\n',
        "one.opencl": f'{note}R"(\n{ONE})"\n',
    }
    kernel, _ = kernel_of(tmp_path, files, "one")
    assert 'R"(' not in kernel.text and ')"' not in kernel.text
    assert "typedef float real;" in kernel.text and "clang-format" in kernel.text
    alone, first = kernel_of(tmp_path, {"one.opencl": files["one.opencl"]}, None)
    assert alone.text == ONE
    assert first.endswith("(line 3).")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('x = "a" "b";', ["ab"]),
        ('x[] = {"a", "b"};', ["a", "b"]),
        ('f("a" + y, "b"); y = 3;', ["a", "b"]),
        ('f << "a" << "b";', ["a", "b"]),
        ('x = "a"; y = x + "b"; z = "c" + y + x;', ["a", "ab", "caba"]),
        ('x = x + "a"; y = y + y + y + y; z = y + "b";', ["a", "b"]),
        ('s = "a"; s += "b"; t = s + "c";', ["a", "b", "abc"]),
        ('#define A "a" \\\n  "b"\n#define B "c"\ny = A + "d";', ["ab", "c", "abd"]),
        ('#include "a"\n// "b"\n/* "c" */ x = \'"\'; y = "d";', ["d"]),
        ('x = R"q(a)" b)q";', ['a)" b']),
    ],
)
def test_texts_that_host_code_puts_together(text: str, found: list[str]) -> None:
    assert [s.text for s in host_strings(text)] == found


@pytest.mark.parametrize("text", ['x = "a";', "int x;", "", "// only a comment", 'R"(a)" + b'])
def test_a_file_with_anything_beside_literals_is_not_one(text: str) -> None:
    assert only_literals(text) is None


def test_texts_that_double_end_at_a_limit() -> None:
    doubling = "".join(f'a{n} = a{n - 1} + a{n - 1} + "x"; ' for n in range(20_000))
    assert sum(len(s.text) for s in host_strings(doubling)) <= 8 * 1024 * 1024
    assert [s.text for s in host_strings('R"(' * 20_000)] == ['R"(' * 19_999]
