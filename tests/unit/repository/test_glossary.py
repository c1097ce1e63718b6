"""The glossary: every word that it defines is used, and none is defined twice."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
CODE = ("warpsmith", "agents", "db", "worker", "api")
WORDS = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text(), re.MULTILINE)


@cache
def used() -> str:
    """All product code and all other documents, in small letters, with single blanks between words."""
    documents = [p for p in (ROOT / "docs").rglob("*.md") if p != GLOSSARY]
    modules = [p for name in CODE for p in (ROOT / name).rglob("*.py")]
    text = "\n".join(p.read_text() for p in (*documents, *modules)).lower()
    return re.sub(r"[\s_-]+", " ", text)


def test_no_word_is_defined_twice() -> None:
    assert len(WORDS) >= 30
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_used(word: str) -> None:
    stem = re.sub(r"[\s_-]+", " ", word.lower()).removesuffix("s")
    assert re.search(rf"\b{re.escape(stem)}(?:s|es|ies)?\b", used()), word
