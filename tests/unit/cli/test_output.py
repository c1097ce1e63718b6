"""Text of a service or a log message does nothing to the terminal or the log that shows it."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from testbed.api_service import Service, service_settings, serving
from tests.api.jobs import body
from warpsmith import logs
from warpsmith.cli.app import main
from warpsmith.cli.output import echo
from warpsmith.report.safe_console import SafeConsole
from warpsmith.system.printable import one_line, printable

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eabc"
"""Sets the title, clears the screen, turns red, and turns the direction of writing."""


def is_harmless(text: str) -> bool:
    return not set(text) & {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x00"}


def test_lines_stay_and_controls_are_shown() -> None:
    assert printable("a\n\tb\r\x1b[1m") == "a\n\tb\\u000d\\u001b[1m"
    assert one_line("a\nb") == "a\\nb"
    assert json.loads(printable(json.dumps("\x9b\u202e", ensure_ascii=False))) == "\x9b\u202e"


def test_an_echo_and_a_console_show_no_controls(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    assert is_harmless(capsys.readouterr().out)
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=False)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    console.print(table)
    console.print(Text.assemble((HOSTILE, "bold")))
    console.print(HOSTILE, markup=False)
    assert is_harmless(file.getvalue())
    assert "abc" in file.getvalue()


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[tuple[Service, str]]:
    """A service with a job whose detail steers terminals."""
    with serving(service_settings(tmp_path), open_access=True) as service:
        job = service.http.post("/v1/jobs", json=body(labels={"team": "a\x9b31m"})).json()["id"]
        with service.database.write() as session:
            from db.repositories.jobs import JobRepository

            JobRepository(session).set_detail(job, f"{HOSTILE}\n{job} forged: done")
        yield service, job


@pytest.mark.parametrize(
    "words", [["status"], ["status", "--json"], ["jobs"], ["jobs", "--json"], ["events"], ["definition"]]
)
def test_no_command_lets_a_service_steer_the_terminal(
    hostile: tuple[Service, str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    service, job = hostile
    command, *options = words
    ids = [] if command == "jobs" else [job]
    with pytest.raises(SystemExit):
        main([command, *ids, *options, "--url", str(service.http.base_url)])
    shown = capsys.readouterr().out
    assert shown
    assert is_harmless(shown)
    assert not any(line.startswith(f"{job} forged") for line in shown.splitlines())


def test_a_message_cannot_forge_a_line_of_the_log() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.configure()
        handler = root.handlers[0]
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(stream)
        logging.getLogger("a").warning("hello\n2026-01-01T00:00:00Z error worker: forged \x1b[2J")
        try:
            raise ValueError("x\n2026-01-01T00:00:00Z error worker: forged")
        except ValueError:
            logging.getLogger("a").exception("failed")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert is_harmless(stream.getvalue())
    assert not any(line.startswith("2026-01-01") for line in stream.getvalue().splitlines())
