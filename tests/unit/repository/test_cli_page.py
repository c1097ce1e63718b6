"""The page of the command line, and the commands that other documents name."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from warpsmith.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "examples").rglob("*.md"))]


def commands() -> dict[str, set[str]]:
    """Options of each command by its words, such as `keys create`; the program itself has no word."""
    found = {}
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        found[name] = {word for param in command.params for word in (*param.opts, *param.secondary_opts)}
        inner = getattr(command, "commands", {})
        waiting += [(f"{name} {word}".strip(), sub) for word, sub in inner.items()]
    return found


COMMANDS = commands()


def code(text: str) -> Iterator[str]:
    """Fenced blocks and inline code of a document."""
    fenced = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
    yield from (block.replace("\\\n", " ") for block in fenced.findall(text))
    yield from re.findall(r"`([^`]+)`", fenced.sub("", text))


def words_of(call: str) -> list[str]:
    """Words of one call, up to a comment or the next command of the line."""
    lexer = shlex.shlex(call, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = []
    for word in lexer:
        if word[0] in "|&;<>()":
            break
        words.append(word)
    return words


def unknown(text: str) -> list[str]:
    """Calls of a document that name a command or an option which the program lacks."""
    found = []
    for piece in code(text):
        for call in re.findall(r"(?<![\w.-])(?<!from )warpsmith ([a-z][^\n`]*)", piece):
            words = words_of(call)
            # Usage of a group has `[OPTIONS]` where a call has a command of it.
            grouped = words[0] == "keys" and words[1:] and words[1].islower()
            name = " ".join(words[:2]) if grouped else words[0]
            given = [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
            if name not in COMMANDS:
                found.append(f"warpsmith {name}: no such command")
            else:
                known = COMMANDS[name] | {"--help"}
                found += [f"warpsmith {name} {word}: no such option" for word in given if word not in known]
    return found


@pytest.fixture(scope="module")
def cli_page() -> ModuleType:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("cli_page", ROOT / "scripts" / "cli_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_its_script_writes(cli_page: ModuleType) -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == cli_page.page(), "run python scripts/cli_page.py"


@pytest.mark.parametrize("name", sorted(COMMANDS), ids=lambda n: n or "warpsmith")
def test_the_page_names_every_option_in_the_section_of_its_command(name: str) -> None:
    heading = f"## `{f'warpsmith {name}'.strip()}`\n"
    _, found, rest = (ROOT / "docs" / "cli.md").read_text().partition(heading)
    assert found, f"{heading.strip()} is missing"
    section = rest.split("\n##", 1)[0] + (ROOT / "docs" / "cli.md").read_text().split("\n##", 1)[0]
    options = {word for word in COMMANDS[name] if word.startswith("-")}
    assert [word for word in options if not re.search(rf"(?<![\w-]){word}(?![\w-])", section)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_calls_in_documents_are_of_commands_and_options_that_exist(path: Path) -> None:
    assert unknown(path.read_text()) == []


def test_documents_have_calls_to_look_at() -> None:
    calls = [
        c for p in PAGES for piece in code(p.read_text()) for c in re.findall(r"warpsmith [a-z]+", piece)
    ]
    assert len(calls) > 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("`warpsmith submit job.yaml --prio 1`", "warpsmith submit --prio: no such option"),
        ("```\n.venv/bin/warpsmith tunee job.yaml\n```", "warpsmith tunee: no such command"),
        (
            "```\nwarpsmith keys create me \\\n  --tenants a\n```",
            "warpsmith keys create --tenants: no such option",
        ),
        ("`warpsmith init kernel.cu -Q X`", "warpsmith init -Q: no such option"),
    ],
)
def test_a_call_that_cannot_work_is_found(text: str, said: str) -> None:
    assert unknown(text) == [said]


def test_what_follows_a_call_is_not_of_it() -> None:
    assert unknown("```\nwarpsmith jobs --json | jq --raw-output .id  # not --prio\n```") == []
