"""The bench that puts faults into the product: its table, and what it makes of a tree of two files."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutation.__main__ import (
    CAUGHT,
    FAILED,
    NOT_CAUGHT,
    PASSED,
    Fault,
    Run,
    main,
    read_faults,
    tried,
)
from benchmarks.provenance import ROOT

ABOVE = Fault("a limit is below itself", "own.py", "n > 3", "n >= 3", "own")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A module with a limit, and a test of it."""
    (tmp_path / "own.py").write_text("def above(n):\n    return n > 3 and n > -9\n")
    (tmp_path / "test_own.py").write_text(
        "import own\n\ndef test_it():\n    assert own.above(4) and not own.above(3)\n"
    )
    return tmp_path


def test_every_fault_applies_once_and_has_tests() -> None:
    faults, tests = read_faults()
    assert len({f.name for f in faults}) == len(faults)
    assert {f.tests for f in faults} == set(tests)
    for fault in faults:
        fault.put_into((ROOT / fault.file).read_text())
    paths = [word for words in tests.values() for word in words if word.startswith("tests/")]
    assert all((ROOT / path).exists() for path in paths)


def answer(monkeypatch: pytest.MonkeyPatch, *statuses: int | None) -> None:
    """Have the tests end with these statuses of pytest, one after the other."""
    runs = iter([Run(status, "", 0.0) for status in statuses])
    monkeypatch.setattr("benchmarks.mutation.__main__.tested", lambda *_, **__: next(runs))


def test_a_fault_is_caught_or_an_error_and_the_tree_is_as_before(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Most of the processor time of a start of pytest.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    before = (tree / "own.py").read_text()
    broken = replace(ABOVE, name="no Python", old="return", new="return return")
    rows = tried(tree, [ABOVE, broken], {"own": ["test_own.py"]})
    assert [row["outcome"] for row in rows] == [CAUGHT, "error: exit status 2"]
    assert rows[0]["by"] == "test_own.py::test_it"
    assert (tree / "own.py").read_text() == before


def test_a_fault_is_missed_where_all_tests_pass_and_an_error_where_they_do_not_end(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, PASSED, PASSED, None)
    rows = tried(tree, [ABOVE, ABOVE], {"own": ["test_own.py"]})
    assert [row["outcome"] for row in rows] == [NOT_CAUGHT, "error: no end after 600 s"]


def test_it_stops_where_a_fault_cannot_be_put_in_or_tests_fail_without_one(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"a limit is below itself.* occurs 2 times in own.py"):
        tried(tree, [replace(ABOVE, old="n > ")], {"own": ["test_own.py"]})
    answer(monkeypatch, FAILED)
    with pytest.raises(SystemExit, match="'own' fail without a fault"):
        tried(tree, [ABOVE], {"own": ["test_own.py"]})


def test_the_record_names_what_was_not_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"fault": "f", "file": "own.py", "tests": "own", "cpu_s": 1.0, "outcome": CAUGHT, "by": "t"}
    monkeypatch.setattr(sys, "argv", ["mutation", "--out", str(tmp_path)])
    monkeypatch.setattr("benchmarks.mutation.__main__.copy_of", lambda root, folder: folder)
    for rows, status in (([row], 0), ([row, row | {"outcome": NOT_CAUGHT}], 1)):
        monkeypatch.setattr("benchmarks.mutation.__main__.tried", lambda *a, rows=rows: rows)
        assert main() == status
        assert json.loads((tmp_path / "mutation.json").read_text())["faults"] == rows
    assert "1 of 2 are caught" in (tmp_path / "mutation.md").read_text()
    assert "- f (`own.py`): not caught" in (tmp_path / "mutation.md").read_text()
