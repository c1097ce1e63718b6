"""Encodings of sources, from the file through `init` to the job that is sent."""

from pathlib import Path

import pytest

from warpsmith.extensions.scaffold.command.init import InitOptions, scaffold
from warpsmith.job_files.jobfile import load_job
from warpsmith.system.source_text import source_text

TWICE = """// © Müller, twice
__kernel void twice(__global float *x, const int n) {
    int i = get_global_id(0);
    if (i < n) x[i] = 2.0f * x[i];
}
"""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"\xef\xbb\xbfint \xc3\xa9;", "int \u00e9;"),
        (b"\xff\xfeh\0i\0", "hi"),
        (b"\xfe\xff\0h\0i", "hi"),
        (b"\xa9 \xc3\xa9", "\u00a9 \u00c3\u00a9"),
        (b"", ""),
        (b"\xff\xfeh\0i", "h\ufffd"),
    ],
)
def test_a_byte_order_mark_or_the_bytes_tell_the_encoding(data: bytes, text: str) -> None:
    assert source_text(data) == text


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-8-sig", "utf-16"])
def test_init_and_the_job_read_the_same_text(tmp_path: Path, encoding: str) -> None:
    source = tmp_path / "twice.cl"
    source.write_bytes(TWICE.replace("\n", "\r\n").encode(encoding))
    target = tmp_path / "twice.yaml"
    target.write_text(scaffold([source], target, InitOptions()), encoding="utf-8")
    kernel = load_job(target).kernel
    assert kernel.text == TWICE
    assert [a.name for a in kernel.arguments] == ["x", "n"]


@pytest.mark.parametrize(
    "odd", ["\u2028", "\u2029", "\x85", "\ufeff", "\x0b", "\x0c", "\U0001f600", "\u00e9"]
)
def test_no_character_of_a_comment_breaks_a_source_inside_of_the_job(tmp_path: Path, odd: str) -> None:
    host = tmp_path / "host.cpp"
    host.write_text(f'const char *s = R"(\n{TWICE.replace("Müller", odd)})";\n', encoding="utf-8")
    target = tmp_path / "twice.yaml"
    target.write_text(scaffold([host], target, InitOptions()), encoding="utf-8")
    assert load_job(target).kernel.text.split("\n")[1:] == TWICE.split("\n")[1:]
