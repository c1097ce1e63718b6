"""The database lies in the data folder, whatever the folder's name is: no path is taken for a URL."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import text

from db.engine import Database, make_engine, normal_url
from testbed.repetitions import examples
from warpsmith.settings import Settings

NAMES = (
    "pct%20x",
    "feature%2Ftune",
    "q?mark",
    "q?mode=memory",
    "q?cache=shared&uri=true",
    "hash#1",
    "user@host:1",
    "a;b&c=d",
    " two words ",
    "line\nbreak",
    "quotes'\"`$(x)",
    "back\\slash",
    "{SCHEMA_VERSION}",
    "%(here)s",
    ":memory:",
    "file:x?mode=memory",
    "größe [1]*",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_database_is_in_its_folder_and_nothing_lies_beside_it(tmp_path: Path, name: str) -> None:
    data_dir = tmp_path / name
    database = Database(Settings(_env_file=None, data_dir=data_dir).sqlalchemy_url)
    with database.write() as session:
        session.execute(text("CREATE TABLE x (y INTEGER)"))
    # Optuna gets a string, and fills in its own fields.
    again = database.engine.url.render_as_string(hide_password=False).format(SCHEMA_VERSION="1")
    database.dispose()
    other = make_engine(again)
    with other.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM x")).scalar_one() == 0
    other.dispose()
    assert (data_dir / "warpsmith.db").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert data_dir.stat().st_mode & 0o077 == 0


@given(st.lists(st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1), min_size=1))
@example(["%", "?", "#"])
@example(["%2F%00"])
@examples(100)
def test_every_path_comes_back_from_its_address(names: list[str]) -> None:
    data_dir = Path("/", *names)
    address = normal_url(Settings(_env_file=None, data_dir=data_dir).sqlalchemy_url)
    assert address.database == str(data_dir / "warpsmith.db")
    assert not address.query and not address.host
