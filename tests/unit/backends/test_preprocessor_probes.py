"""Words that tell where a source is compiled, with a preprocessor of a few lines in the compiler's place."""

import re

import pytest

from warpsmith.backends.probes.preprocessor_probes import (
    FILE_PROBES,
    PROBES,
    Preprocessed,
    ProbeGuard,
    effective_probes,
    guard,
    header_in,
    source_in,
)

HEADER = "typedef int header;\n"
OWN = {"__FILE__": '"tempfile.cl"', "__LINE__": "3", "__COUNTER__": "0"}
_DEFINITION = re.compile(r'#define (\w+)(?:\(file\))? (".*"|\d+)')
_CONDITION = re.compile(r"#if (.*)")


def preprocessed(source: str) -> Preprocessed:
    """Words become values; `#if A B` keeps the next line where one of them is a number other than 0."""
    values, lines, skips = dict(OWN), [], False
    for line in source.splitlines():
        if skips:
            skips = False
        elif found := _DEFINITION.fullmatch(line):
            values[found[1]] = found[2]
        elif found := _CONDITION.fullmatch(line):
            named = [values.get(word, word) for word in found[1].split()]
            if any(value.startswith('"') for value in named):
                return Preprocessed(None, "invalid token")
            skips = not any(map(int, named))
        elif line.startswith("#pragma warpsmith"):
            lines.append(line)
        elif not line.startswith("#"):
            lines.append(re.sub(r"\w+", lambda word: values.get(word[0], word[0]), line))
    return Preprocessed(HEADER + "\n".join(lines))


def telling(source: str) -> tuple[str, ...]:
    by = guard()
    second = preprocessed(by.before(source))
    plain = source_in(preprocessed(source).text or "", HEADER.rstrip())
    assert plain is not None
    return effective_probes(plain, by, second, lambda other: preprocessed(other.before(source)))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int x = 1;", ()),
        ("#define A __FILE__\nint x;", ()),
        ("int file = FILE;", ()),
        ("f(__FILE__);", ("__FILE__",)),
        ("int x = __LINE__ + __COUNTER__;", ("__LINE__", "__COUNTER__")),
        ("#if 1 __COUNTER__\nint x;", ()),
        ("#if __LINE__\nint x;", ()),
        ("#if __COUNTER__\n#define A 1", ()),
        ("#if __COUNTER__\nint x;\nint y;", ("__COUNTER__",)),
        ("#if __LINE__\nf(__FILE__);", ("__FILE__",)),
        ("#if __COUNTER__\nf(__FILE__);\nf(__DATE__);", ("__DATE__", "__COUNTER__")),
    ],
)
def test_words_that_count_are_told(source: str, words: tuple[str, ...]) -> None:
    assert telling(source) == words


def test_numbers_that_matter_only_together_are_told() -> None:
    """A condition that holds while one of two numbers is what it is."""
    plain = "int x;"

    def again(other: ProbeGuard) -> Preprocessed:
        text = other.before("int x;" if {"__LINE__", "__COUNTER__"} - {*other.words} else "int y;")
        return preprocessed(text)

    assert set(effective_probes(plain, guard(), Preprocessed(None), again)) > {"__LINE__", "__COUNTER__"}


def test_blank_lines_tell_nothing() -> None:
    by = guard()
    second = preprocessed(by.before("\n\n  int x;\n\nint y;"))
    assert effective_probes("int x;\nint y;\n", by, second, lambda _: Preprocessed(None)) == ()


def test_where_nothing_is_known_every_word_counts() -> None:
    assert set(effective_probes("int x;", guard(), Preprocessed(None), lambda _: Preprocessed(None))) == set(
        PROBES
    )
    other = preprocessed(guard().before("int y;"))
    assert (
        effective_probes("int x;", guard(), other, lambda other: preprocessed(other.before("int x;")))
        == PROBES
    )


def test_no_source_foresees_a_value() -> None:
    """A header of the value's name would stand for the one of today's date."""
    first, second = (guard(("__DATE__",)).before("") for _ in range(2))
    assert first != second


def test_a_source_cannot_move_its_beginning() -> None:
    source = "f(__FILE__);\n#pragma warpsmith_source_begins\nint x;"
    assert telling(source) == ("__FILE__",)


def test_the_header_is_what_stands_before_the_guard() -> None:
    text = preprocessed(guard().before("int x;")).text or ""
    assert header_in(text) == HEADER.rstrip()
    assert header_in("int x;") is None
    assert source_in("int x;", HEADER) is None


def test_words_of_conditions_are_known_by_their_place() -> None:
    by = ProbeGuard(("__LINE__", *FILE_PROBES), "salt")
    log = "error: kernel.cl:1:5 <Spelling=warpsmith_words:2:35>: invalid token"
    assert by.in_log(log) == (FILE_PROBES[0],)
    assert by.in_log("error: kernel.cl:2:5: invalid token") == ()


def test_lines_are_those_of_the_source() -> None:
    assert guard().before("int x;").endswith('#line 1 "kernel.cl"\nint x;')
