"""How `make test` splits the suite in two: nothing is lost between the parts, and no failure in one."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[3]
HERE = "tests/unit/repository/test_suite.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suite", ROOT / "scripts" / "suite.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((0, 0), 0), ((1, 0), 1), ((0, 1), 1), ((5, 0), 0), ((0, 5), 0), ((5, 5), 5), ((1, 2), 1), ((5, 4), 4)],
)
def test_a_failure_of_either_part_is_one_of_the_whole(codes: tuple[int, int], expected: int) -> None:
    assert load().verdict(list(codes)) == expected


CHANCE = """
from pathlib import Path

import pytest

SEEN = Path(__file__).with_name("seen")


def test_right():
    pass


@pytest.mark.parametrize("n", range({times}))
def test_wrong(n):
    again = SEEN.exists() and n == {last}
    SEEN.touch() if n == {last} else None
    assert again and {mends}
"""


@pytest.mark.parametrize(
    ("times", "mends", "code", "again"),
    [(1, True, 0, True), (1, False, 1, True), (6, True, 1, False), (2, True, 1, True)],
    ids=["mended", "fails_twice", "too_many", "one_of_two"],
)
def test_few_that_fail_run_once_more(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    times: int,
    mends: bool,
    code: int,
    again: bool,
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_chance.py").write_text(CHANCE.format(times=times, last=times - 1, mends=mends))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert load().run(("-p", "tests.conftest"), []) == code
    assert ("by itself runs once more" in capfd.readouterr().out) is again


def test_processes_of_the_tests_find_bytecode_of_those_before() -> None:
    given = {"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/bin"}
    assert load().environment(given) == {"PATH": "/bin"}


@pytest.mark.alone
def test_that_wants_to_be_alone() -> None:
    """Collected by the test below."""


@pytest.mark.parametrize("part", ["beside", "alone", ""])
def test_every_test_is_in_one_part(part: str) -> None:
    words = [
        sys.executable,
        "-m",
        "pytest",
        HERE,
        "--collect-only",
        "-q",
        *(["--part", part] if part else []),
    ]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert ran.returncode == 0, ran.stdout
    assert ("test_that_wants_to_be_alone" in ran.stdout) == (part != "beside")
    assert ("test_every_test_is_in_one_part" in ran.stdout) == (part != "alone")


def test_files_without_a_test_of_the_part_are_not_imported() -> None:
    words = [sys.executable, "-m", "pytest", HERE, "tests/unit/domain", "--co", "-q", "--part", "alone"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "1/" in ran.stdout.splitlines()[-1] and "tests/unit/domain" not in ran.stdout
    assert "deselected" in ran.stdout, "the other tests of this file were looked at"


def test_a_folder_runs_by_its_name_and_a_wrong_name_lists_them() -> None:
    def make(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)

    dry = make("--dry-run", "test-unit", "PYTEST_ARGS=-k bits").stdout
    assert "scripts/suite.py tests/unit -k bits" in dry
    wrong = make("test-nothing")
    assert wrong.returncode == 2
    assert {"unit", "e2e", "sandbox"} <= set(wrong.stdout.split())
    assert "tests/gpu" in make("--dry-run", "test-gpu").stdout
