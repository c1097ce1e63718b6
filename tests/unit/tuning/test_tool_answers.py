"""What the answers of tools are held to, and sources without comments."""

import pytest

from warpsmith.source.lexing.tokens import comments_blanked
from warpsmith.tuning.tasks import MAX_ANSWER_CHARACTERS, ToolAnswer


def test_an_answer_is_shortened_to_its_limit() -> None:
    answer = ToolAnswer.of(["x" * 10] * 10_000)
    assert len(answer.text) == MAX_ANSWER_CHARACTERS
    assert answer.text.endswith("\n[shortened]")
    assert ToolAnswer.of(["a", "b"], ok=False) == ToolAnswer(text="a\nb", ok=False)


@pytest.mark.parametrize(
    "text",
    [
        "int a; // words\nint b; /* words\n words */ int c;\n",
        "#define A 1 /* words\n\n words */ + 2\nint d = A;\n",
        "// words \\\n words\nint e;\n",
        'char* f = "// kept"; // words',
    ],
)
def test_code_keeps_its_place_without_comments(text: str) -> None:
    blanked = comments_blanked(text)
    assert "words" not in blanked
    assert ("kept" in blanked) == ("kept" in text)
    for before, after in zip(text.split("\n"), blanked.split("\n"), strict=True):
        for name in "abcdef":
            assert after.find(f" {name}") in (before.find(f" {name}"), -1)


def test_a_directive_goes_on_where_its_comment_does() -> None:
    assert comments_blanked("#define A /* w\n */ 2\n") == "#define A     \\\n    2\n"
