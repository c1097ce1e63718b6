"""A data folder or a database that cannot be used: one line with place and remedy, and exit code 2."""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from db import engine, migrate
from db.engine import Database
from db.views.job_status import job_status
from testbed.api_service import service_settings, serving
from testbed.plain_http import NO_TLS
from testbed.rows import add_job
from warpsmith.cli import main
from warpsmith.cli.installation_checks import installation_checks
from warpsmith.settings import settings
from warpsmith.testing.jobs import scale_job
from worker.stop_request import StopRequest

Place = Callable[[Path], None]


def foreign(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "warpsmith.db")) as other:
        other.execute("CREATE TABLE moz_cookies (id INTEGER)")
        other.commit()


def torn(folder: Path) -> None:
    migrate.prepare(service_settings(folder))
    whole = (folder / "warpsmith.db").read_bytes()
    for ending in ("", "-wal", "-shm"):
        (folder / f"warpsmith.db{ending}").unlink(missing_ok=True)
    (folder / "warpsmith.db").write_bytes(whole[:100] + b"\xff" * 9000)


def garbage(folder: Path) -> None:
    (folder / "warpsmith.db").write_text("this is no database\n" * 500)


def a_folder(folder: Path) -> None:
    (folder / "warpsmith.db").mkdir()
    (folder / "warpsmith.db").chmod(0o755)


def a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "warpsmith.db")


def a_dangling_link(folder: Path) -> None:
    (folder / "warpsmith.db").symlink_to(folder / "nowhere" / "warpsmith.db")


def newer(folder: Path) -> None:
    migrate.prepare(service_settings(folder))
    with closing(sqlite3.connect(folder / "warpsmith.db")) as made:
        made.execute("UPDATE warpsmith_version SET version_num = '0099'")
        made.commit()


def a_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("")


PLACES = (foreign, torn, garbage, a_folder, a_pipe, a_dangling_link, newer, a_file)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Runs a command with a data folder."""
    monkeypatch.setattr(StopRequest, "stop_on_signals", lambda _: None)
    monkeypatch.setenv("WARPSMITH_ALLOW_ROOT", "true")

    def ran(data_dir: Path, *words: str) -> int:
        monkeypatch.setenv("WARPSMITH_DATA_DIR", str(data_dir))
        settings.cache_clear()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        assert isinstance(ended.value.code, int)
        return ended.value.code

    yield ran
    settings.cache_clear()


def refused(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    """Standard error ends in one line that names the place and a remedy."""
    said = capsys.readouterr().err
    assert "Traceback" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert said.rstrip().endswith(line)
    assert str(place) in line
    assert "WARPSMITH_DATA_DIR" in line or "start that version" in line


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("words", [("serve", "--embedded", "--port", "1"), ("keys", "list"), ("worker",)])
def test_a_bad_place_is_named(
    make: Place,
    words: tuple[str, ...],
    tmp_path: Path,
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "data\nfolder %41"
    folder.mkdir()
    make(folder)
    mode = (folder / "warpsmith.db").stat().st_mode if make is a_folder else None
    if words == ("worker",) and make is foreign:
        return  # a worker changes no schema, and waits for whoever does
    began_s = time.monotonic()
    assert run(folder, *words) == 2
    assert time.monotonic() - began_s < 20
    refused(capsys, tmp_path)
    assert mode is None or (folder / "warpsmith.db").stat().st_mode == mode


def test_a_tune_tells_what_its_service_met(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    newer(tmp_path)
    job = tmp_path / "job.json"
    job.write_text(scale_job().model_dump_json(exclude_unset=True))
    assert run(tmp_path, "tune", str(job), "--no-check", "--out", str(tmp_path)) == 2
    refused(capsys, tmp_path / "warpsmith.db")


@pytest.mark.parametrize("words", [("tune", "JOB", "--no-check"), ("serve", "--embedded"), ("keys", "list")])
@pytest.mark.parametrize("full", [True, False])
def test_a_folder_that_takes_nothing_is_named(
    words: tuple[str, ...],
    full: bool,
    tmp_path: Path,
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even by root: /sys takes no folder, and /dev/full no byte."""
    job = tmp_path / "job.json"
    job.write_text(scale_job().model_dump_json(exclude_unset=True))
    folder = tmp_path / "data" if full else Path("/sys/warpsmith")
    if full:
        whole = open
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: whole("/dev/full", "wb", buffering=0))
    assert run(folder, *(str(job) if word == "JOB" else word for word in words)) == 2
    refused(capsys, folder)


@pytest.mark.parametrize("make", [newer, garbage, foreign])
def test_the_doctor_finds_it(make: Place, tmp_path: Path) -> None:
    make(tmp_path)
    (found,) = (c for c in installation_checks(service_settings(tmp_path)) if c.subject == "data folder")
    assert found.blocks
    words: dict[Place, str] = {newer: "0099", garbage: "file is not a database", foreign: "'moz_cookies'"}
    assert words[make] in found.detail


def filled(database: Database) -> None:
    """From now on the database has no room for a page."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    event.listen(database.engine, "connect", limit)
    database.engine.dispose()


def test_who_waits_for_room_is_told_once_and_the_job_says_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = service_settings(tmp_path)
    migrate.prepare(chosen)
    database = Database(chosen.sqlalchemy_url)
    with database.write() as session:
        job = add_job(session).id
    filled(database)
    words = f"database or disk is full: {tmp_path / 'warpsmith.db'}"
    for _ in range(5):
        with pytest.raises(OperationalError) as failed, database.write() as session:
            session.execute(text("CREATE TABLE more AS SELECT zeroblob(100000)"))
        database.waits("the result", failed.value)
    assert [record.getMessage() for record in caplog.records] == [
        f"the result waits for the database: {words}"
    ]
    monkeypatch.setattr(engine, "REPEAT_S", 0.0)
    database.waits("the result", failed.value)
    assert len(caplog.records) == 2
    with database.read() as session:
        assert job_status(session, job).detail.startswith(words)
    (tmp_path / "warpsmith.db-trouble").write_bytes(f"{time.monotonic() - 60}\n{words}".encode())
    with database.read() as session:
        assert words not in job_status(session, job).detail
    database.dispose()


def test_http_names_what_keeps_the_database_from_writing(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path), open_access=True) as service:
        filled(service.database)
        job = scale_job(
            kernel=scale_job().kernel.model_dump(mode="json") | {"files": {"a.h": "//" + "x" * 200_000}}
        )
        reply = httpx2.post(
            f"{service.http.base_url}/v1/jobs",
            content=job.model_dump_json(exclude_unset=True),
            verify=NO_TLS,
            headers={"Content-Type": "application/json"},
        )
        assert reply.status_code == 503
        words = f"database or disk is full: {tmp_path / 'warpsmith.db'}; nothing was stored, try again"
        assert reply.json()["detail"] == words
