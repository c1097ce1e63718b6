"""The commands of docs/api.md, as printed: curl and a service on SQLite, on PoCL."""

import shutil
from pathlib import Path

import pytest

from testbed.printed_blocks import as_printed, commands, files, run_command
from testbed.service import Service

PAGE = "docs/api.md"
PRINTED = "http://127.0.0.1:8765"
"""Address of the service on the page; that of the test has another port."""


@pytest.mark.slow
def test_the_commands_of_the_page_run_as_printed(tmp_path: Path) -> None:
    if not (shutil.which("curl") and shutil.which("jq")):
        pytest.skip("the page's commands need curl and jq")
    folder = tmp_path / "page"
    folder.mkdir()
    for name, text in files(PAGE).items():
        (folder / name).write_text(text)
    shown = commands(PAGE)
    assert len(shown) >= 5 and any(PRINTED in command.line for command in shown)
    service = Service(tmp_path / "service").start()
    try:
        lines = [command.line.replace(PRINTED, service.url) for command in shown]
        ran = run_command("set -e\n" + "; echo\n".join(lines), folder)
        assert ran.returncode == 0, ran.stdout + service.logs()
        # A reply without an end of line stands before an empty one of `echo`, any other after it.
        printed = "\n".join(filter(None, ran.stdout.splitlines()))
        assert as_printed("\n".join(c.prints for c in shown if c.prints), printed), printed
    finally:
        service.stop()
