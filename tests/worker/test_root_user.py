"""A worker that is root ends where it works for others, and warns where it does not."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import worker.main
from warpsmith.cli import main
from warpsmith.errors import Unavailable
from warpsmith.extensions.clients.commands import service_commands
from warpsmith.settings import settings


class Began(Exception):
    """The worker went on to its work."""


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[int, bool, bool], None]]:
    """A worker's start as some user, up to where its work would begin."""

    def begin(user: int, allowed: bool, embedded: bool) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        monkeypatch.setenv("WARPSMITH_ALLOW_ROOT", str(allowed))
        settings.cache_clear()
        worker.main.run(("control",), embedded=embedded)

    def stop() -> None:
        raise Began

    monkeypatch.setenv("WARPSMITH_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(worker.main, "StopRequest", stop)
    yield begin
    settings.cache_clear()


def test_a_worker_of_a_fleet_ends_as_root(start: Callable[[int, bool, bool], None]) -> None:
    with pytest.raises(Unavailable, match=r"runs as root, .* set WARPSMITH_ALLOW_ROOT=true"):
        start(0, False, False)
    for user, allowed in ((0, True), (1000, False)):
        with pytest.raises(Began):
            start(user, allowed, False)


@pytest.mark.parametrize(
    ("user", "allowed", "warns"), [(0, False, True), (0, True, False), (7, False, False)]
)
def test_an_embedded_worker_warns(
    start: Callable[[int, bool, bool], None],
    caplog: pytest.LogCaptureFixture,
    user: int,
    allowed: bool,
    warns: bool,
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Began):
        start(user, allowed, True)
    assert ("this worker runs as root" in caplog.text) is warns


@pytest.mark.parametrize("words", [["worker"], ["serve", "--embedded", "--host", "0.0.0.0"]])
def test_the_commands_say_so_in_a_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(service_commands, "_look_for_keys", lambda _address: None)
    monkeypatch.setenv("WARPSMITH_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("WARPSMITH_ALLOW_ROOT", raising=False)
    settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 3
    assert "start it as another user, or set WARPSMITH_ALLOW_ROOT=true" in capsys.readouterr().err
    settings.cache_clear()
