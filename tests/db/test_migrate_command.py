"""`warpsmith migrate`, on an empty database, on one that does not answer, and without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from db import migrate
from testbed.servers import free_port
from warpsmith.cli.app import main
from warpsmith.settings import settings


@pytest.fixture(autouse=True)
def _fresh_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Settings of the environment alone, read again by each test."""
    monkeypatch.chdir(tmp_path)
    settings.cache_clear()
    yield
    settings.cache_clear()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code and output of a command."""
    with pytest.raises(SystemExit) as ended:
        main(["migrate", *arguments])
    said = capsys.readouterr()
    return int(str(ended.value.code)), said.out, said.err


def test_it_goes_forward_and_back_and_compares(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", empty_url)
    code, out, _ = run(capsys, "--check")
    assert code == 1 and "add_table" in out
    code, out, _ = run(capsys)
    assert code == 0 and out.endswith(f" is at revision {migrate.head()}\n")
    code, out, _ = run(capsys, "--check")
    assert code == 0 and out.endswith(" has the schema of this version\n")
    code, _, err = run(capsys, "--downgrade", "r9999")
    assert code == 2 and "no revision 'r9999'; this version knows base, r0001, r0002" in err
    code, out, _ = run(capsys, "--downgrade", "r0001")
    assert code == 0 and out.endswith(" is at revision r0001\n")
    assert migrate.current(empty_url) == "r0001"


def test_a_database_that_does_not_answer_or_does_not_exist_is_named(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", f"{postgres_url}_which_nobody_made")
    code, _, err = run(capsys)
    assert code == 3 and "does not exist" in err and len(err.splitlines()) == 1
    settings.cache_clear()
    nowhere = f"postgresql://me:secret@127.0.0.1:{free_port()}/nothing"
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", nowhere)
    code, _, err = run(capsys)
    assert code == 3 and "does not answer (" in err and "refused" in err
    assert "secret" not in err
    settings.cache_clear()
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", "no:secret")
    code, _, err = run(capsys)
    assert code == 2 and err.startswith("error: WARPSMITH_DATABASE_URL: ") and "secret" not in err


def test_without_a_database_it_says_which_setting_names_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("WARPSMITH_DATABASE_URL", raising=False)
    code, _, err = run(capsys)
    assert code == 3 and err.startswith("error: WARPSMITH_DATABASE_URL is not set")
    assert list(tmp_path.iterdir()) == []
