"""Sources that are written to be slow: reading one takes as long as it is, or is given up."""

import time
from collections.abc import Callable

import pytest

from testbed.deadlines import stretched
from testbed.example_jobs import load_example
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.source_text import code_of
from warpsmith.extensions.rules.templater import make_template
from warpsmith.source.declarations.named_constants import find_constants
from warpsmith.source.lexing.conditionals import holds
from warpsmith.source.lexing.tokens import blank, tokenise, without_comments

LENGTH = 60_000
PIECES = ['\\"', '"', "'", "\\'", 'R"(', 'R"a(', "/*", "//\\\n", "\\\n", "#if 1\n", "#define a\n", " ", "1'"]
READERS: list[Callable[[str], object]] = [tokenise, blank, without_comments, code_of, find_constants]


@pytest.mark.parametrize("read", READERS, ids=lambda r: str(r.__name__))
@pytest.mark.parametrize("piece", PIECES)
def test_a_reader_looks_at_each_character_so_many_times(read: Callable[[str], object], piece: str) -> None:
    text = piece * (LENGTH // len(piece))
    # The time of this process: what else runs on the machine is not the reader's.
    began = time.process_time()
    read(text)
    read(f'"{text}')
    assert time.process_time() - began < stretched(1.5)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a "x" b', 'a " " b'),
        ("a 'x' b", "a ' ' b"),
        ('a "x\nb', 'a "x\nb'),
        ('a "x\\"', 'a "x\\"'),
        ('R"(x" /*)" b', "          b"[1:]),
        ("don't /* x\ny", "don't /* x\ny"),
    ],
)
def test_what_has_no_end_is_shown(text: str, shown: str) -> None:
    assert blank(text).split() == shown.split()


def test_code_behind_a_quote_without_an_end_is_code() -> None:
    assert "asm" in code_of("' asm")
    assert "asm" in code_of('" asm\n')
    assert "asm" in code_of("/* asm")
    assert "asm" not in code_of("' asm' \" asm \" /* asm */ // asm")


def scaled(body: str) -> Job:
    """The example with more in the kernel's body."""
    job = load_example("silu_and_mul", "opencl")
    source = job.kernel.text
    at = source.rindex("}")
    kernel = job.kernel.model_copy(update={"source": f"{source[:at]}{body}\n}}\n"})
    return job.model_copy(update={"kernel": kernel})


@pytest.mark.parametrize(
    "body", ["int q = " + "-" * 3000 + "1;", "*" * 3000 + "q = 1;", "q = " * 3000 + "1;"]
)
def test_what_is_nested_too_deeply_is_declined(body: str) -> None:
    report = make_template(scaled(body))
    assert any("nested too deeply" in d.reason for d in report.declined) or report.template.applied


def test_a_source_that_takes_too_long_is_declined() -> None:
    job = scaled("int q = 1;" * 20)
    assert make_template(job).template.applied
    report = make_template(job, steps=1000)
    assert sum("too long to analyse" in d.reason for d in report.declined) > 5


def test_macros_that_multiply_are_given_up() -> None:
    macros = {"A": "A " * 1000}
    began = time.process_time()
    assert not holds("if", "A", macros)
    assert time.process_time() - began < stretched(1.0)
