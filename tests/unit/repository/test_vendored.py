"""Files of other projects that the tree carries: each is as its record says, under a permitted licence."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.licences import permitted
from scripts.packed_files import sha256
from tests.unit.repository.test_layout import ROOT, project_files

RECORD = "VENDORED.toml"
FOLDERS = sorted(path.parent for path in project_files() if path.name == RECORD)
NAMES = [str(folder.relative_to(ROOT)) for folder in FOLDERS]


def problems(folder: Path) -> Iterator[str]:
    """What is wrong with a folder of another project's files, a line each."""
    record = tomllib.loads((folder / RECORD).read_text())
    yield from (
        f"{key} is not said" for key in ("name", "version", "licence", "source") if not record.get(key)
    )
    licence = record.get("licence", "")
    if licence and not permitted(licence):
        yield f"{licence} is not on the list of permitted licences"
    said = record.get("sha256", {})
    found = {path.name for path in folder.iterdir() if path.is_file()} - {RECORD}
    yield from (f"{name} is not in the record" for name in sorted(found - said.keys()))
    yield from (f"{name} is missing" for name in sorted({"LICENSE", *said} - found))
    yield from (
        f"{name} was changed" for name in sorted(found & said.keys()) if sha256(folder / name) != said[name]
    )


def test_the_pages_the_report_and_the_tests_have_what_they_carry() -> None:
    assert {"web/static/vendor/htmx", "warpsmith/report/parts/vendor/uplot", "tests/browser/vendor"} <= {
        *NAMES
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_carried_files_are_as_their_record_says(folder: Path) -> None:
    assert list(problems(folder)) == []


def test_every_file_of_a_vendor_folder_has_a_record_beside_it() -> None:
    carried = [path for path in project_files() if "vendor" in path.relative_to(ROOT).parts]
    assert [str(path.relative_to(ROOT)) for path in carried if path.parent not in FOLDERS] == []


def test_a_changed_a_strange_and_a_missing_file_are_named(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDERS[0], tmp_path / "copy")
    (script,) = folder.glob("*.min.js")
    script.write_text(script.read_text() + "\n")
    (folder / "more.js").write_text("")
    (folder / "LICENSE").unlink()
    assert sorted(problems(folder)) == [
        "LICENSE is missing",
        f"{script.name} was changed",
        "more.js is not in the record",
    ]


def test_a_record_without_a_licence_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDERS[0], tmp_path / "copy")
    record = (folder / RECORD).read_text()
    (folder / RECORD).write_text(record.replace("licence = ", "license = "))
    assert list(problems(folder)) == ["licence is not said"]


def test_a_licence_that_is_not_permitted_is_named(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDERS[0], tmp_path / "copy")
    record = (folder / RECORD).read_text()
    (folder / RECORD).write_text(re.sub("licence = .*", 'licence = "GPL-3.0-only"', record))
    assert list(problems(folder)) == ["GPL-3.0-only is not on the list of permitted licences"]
