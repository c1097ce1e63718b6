"""Secrets may lie in files, and one that an example shows is refused."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy.engine import make_url

from warpsmith.settings import Settings


def made(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)


def file(folder: Path, text: str) -> Path:
    path = folder / "secret"
    path.write_text(text)
    return path


def test_a_password_from_a_file_is_put_into_the_url(tmp_path: Path) -> None:
    path = file(tmp_path, "p@ss/word:1\n")
    found = made(database_url="postgresql+psycopg://me@host:5432/db", database_password_file=path)
    url = make_url(found.sqlalchemy_url)
    assert (url.username, url.password, url.host, url.database) == ("me", "p@ss/word:1", "host", "db")


def test_every_secret_may_come_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_API_KEY_FILE", str(file(tmp_path, "ws_1\n")))
    key = made().api_key
    assert key is not None
    assert key.get_secret_value() == "ws_1"
    assert made(database_url_file=file(tmp_path, "sqlite:///x.db")).database_url == "sqlite:///x.db"
    assert made(broker_url_file=file(tmp_path, "redis://h/0")).broker_url == "redis://h/0"
    model = made(openai_api_key_file=file(tmp_path, "sk")).openai_api_key
    assert model is not None
    assert model.get_secret_value() == "sk"


def test_an_empty_file_is_no_secret(tmp_path: Path) -> None:
    assert made(openai_api_key_file=file(tmp_path, "\n"), api_key_file="").openai_api_key is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"api_key": "a", "api_key_file": "secret"}, "both set"),
        ({"api_key_file": "nowhere"}, "nowhere cannot be read"),
        ({"database_password_file": "secret"}, "needs a database_url"),
        ({"database_url": "postgresql://me:p@host/db", "database_password_file": "secret"}, "no password"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], words: str
) -> None:
    file(tmp_path, "b")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError, match=words):
        made(**values)


@pytest.mark.parametrize("name", ["api_key", "openai_api_key", "database_url", "broker_url"])
def test_a_secret_that_an_example_shows_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="choose your own"):
        made(**{name: "x://me:change-me@host/db" if name.endswith("url") else "change-me"})


def test_so_is_one_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="choose your own"):
        made(database_url="postgresql://me@host/db", database_password_file=file(tmp_path, "change-me"))
