"""`make test`: nothing is lost between its parts and tiers, no failure is hidden, and its costs are held."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import suite
from testbed import rooms, tiers
from testbed.core_seconds import spent_s
from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[3]
HERE = "tests/unit/repository/test_suite.py"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [((0, 0), 0), ((1, 0), 1), ((0, 1), 1), ((5, 0), 0), ((0, 5), 0), ((5, 5), 5), ((1, 2), 1), ((5, 4), 4)],
)
def test_a_failure_of_either_part_is_one_of_the_whole(codes: tuple[int, int], expected: int) -> None:
    assert suite.verdict(list(codes)) == expected


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
    ("times", "mends", "code", "said"),
    [
        (1, True, 0, ["by itself runs once more", "DEFECT"]),
        (1, False, 1, ["by itself runs once more"]),
        (2, True, 1, []),
    ],
    ids=["mended", "fails_twice", "too_many"],
)
def test_one_that_fails_runs_once_more_and_is_a_defect(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    times: int,
    mends: bool,
    code: int,
    said: list[str],
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_chance.py").write_text(CHANCE.format(times=times, last=times - 1, mends=mends))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    ended, spent, failed = suite.run(("-p", "tests.conftest"), [], tmp_path / "costs")
    assert (ended, spent > 0, len(failed)) == (code, True, times)
    out = capfd.readouterr().out
    assert [words for words in ("by itself runs once more", "DEFECT") if words in out] == said
    assert tiers.read_costs(tmp_path / "costs").keys() >= {"test_chance.py::test_right"}


def test_processes_of_the_tests_find_bytecode_of_those_before() -> None:
    given = {"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/bin"}
    assert suite.environment(given) == {"PATH": "/bin"}


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


def test_living_children_cost_as_well() -> None:
    before = spent_s()
    with subprocess.Popen(
        [sys.executable, "-c", "sum(range(8_000_000)); input()"], stdin=subprocess.PIPE
    ) as child:
        while spent_s() - before < 0.1:
            assert child.poll() is None
        child.communicate(b"\n")
    assert spent_s() - before >= 0.1, "it ended, and was waited for"


def test_a_gate_above_its_budget_is_red_and_so_is_a_name_that_no_test_has() -> None:
    costs = dict.fromkeys(tiers.promises(), 1.0)
    assert suite.complaints(costs, suite.GATE_CORE_S) == []
    first = next(iter(costs))
    del costs[first]
    gone, above = suite.complaints(costs, suite.GATE_CORE_S + 1)
    assert first in gone and f"{suite.GATE_CORE_S + 1:.0f} core-seconds" in above


def test_a_slow_machine_may_take_longer_for_the_gate() -> None:
    costs = dict.fromkeys(tiers.promises(), 1.0)
    assert suite.complaints(costs, 1.9 * suite.GATE_CORE_S, 2 * suite.PACE_S) == []
    (above,) = suite.complaints(costs, 2.1 * suite.GATE_CORE_S, 2 * suite.PACE_S)
    assert f"its budget is {2 * suite.GATE_CORE_S:.0f}" in above


def test_the_pace_is_that_of_the_cores() -> None:
    assert 0.01 < suite.pace_s() < 10


def test_every_test_is_in_the_gate_or_in_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "promises", lambda: {"tests/a.py::listed": "a promise"})
    dear = ["tests/a.py::dear", "tests/api/a.py::d[postgres]"]
    monkeypatch.setattr(tiers, "recorded_costs", lambda: dict.fromkeys(["tests/a.py::listed", *dear], 2.0))
    gate = [
        "tests/a.py::listed",
        "tests/a.py::new",
        "tests/api/a.py::t[postgres]",
        "tests/db/a.py::t[sqlite]",
        "tests/api/a.py::d[sqlite]",
    ]
    rest = [*dear, "tests/api/a.py::t[sqlite]"]
    for name in (*gate, *rest):
        assert (tiers.in_tier(name, "gate"), tiers.in_tier(name, "rest")) == (name in gate, name in rest), (
            name
        )
        assert tiers.in_tier(name, "full")


def test_a_change_whose_tests_are_all_in_the_gate_is_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "selection", lambda: ["tests/a.py"])
    monkeypatch.setattr(suite, "adopt_orphans", lambda: None)
    none = int(pytest.ExitCode.NO_TESTS_COLLECTED)
    monkeypatch.setattr(suite, "run", lambda *_: (none, 0.0, []))
    assert (suite.main(["changed"]), suite.main(["full", "-k", "nothing"])) == (0, none)


def test_every_promise_says_something_and_every_cost_is_dear() -> None:
    assert all(len(promise.split()) > 2 for promise in tiers.promises().values())
    assert min(tiers.recorded_costs().values()) >= tiers.DEAR_CORE_S


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def test_each_process_begins_with_cheap_files(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = {"tests/e2e/a.py::x": 30.0, "tests/e2e/b.py::x": 5.0}
    monkeypatch.setattr(tiers, "recorded_costs", lambda: dear)
    names = [*dear, "tests/unit/c.py::x", "tests/unit/c.py::y", "tests/api/d.py::x", "tests/unit/e.py::x"]
    order = [item.nodeid for item in tiers.dealt([Item(name) for name in names], 2)]  # type: ignore[misc]
    assert order == [
        *("tests/unit/c.py::x", "tests/unit/c.py::y", "tests/api/d.py::x", "tests/e2e/b.py::x"),
        *("tests/unit/e.py::x", "tests/e2e/a.py::x"),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("warpsmith/search/factory.py", ["tests/contract", "tests/unit/search", "tests/unit/tuning"]),
        ("tests/unit/search/test_portfolio.py", ["tests/unit/search/test_portfolio.py"]),
        ("tests/unit/search/test_gone.py", []),
        ("tests/sandbox/children.py", ["tests/sandbox"]),
        ("tests/conftest.py", ["tests"]),
        ("tests/gate.toml", list(rooms.REPOSITORY)[::-1]),
        (
            "docs/search.md",
            [f"tests/e2e/test_{page}.py" for page in ("api_page", "first_ten_minutes", "python_page")],
        ),
        ("README.md", []),
        ("pyproject.toml", list(rooms.REPOSITORY)[::-1]),
    ],
)
def test_a_change_brings_the_tests_of_its_room(path: str, expected: list[str]) -> None:
    assert rooms.tests_of([path]) == expected


def test_a_folder_stands_for_what_lies_in_it() -> None:
    paths = ["tests/sandbox/children.py", "tests/sandbox/test_confine.py"]
    assert rooms.tests_of(paths) == ["tests/sandbox"]


def test_every_room_is_there_and_every_package_is_in_one() -> None:
    table = rooms.read_rooms()
    assert [folder for folder in table if not (ROOT / folder).is_dir()] == []
    assert [test for tests in table.values() for test in tests if not (ROOT / test).exists()] == []
    packages = [path.parent for path in ROOT.glob("warpsmith/*/__init__.py")]
    assert [p for p in packages if str(p.relative_to(ROOT)) not in table] == []


def test_files_without_a_test_of_the_part_are_not_imported() -> None:
    words = [sys.executable, "-m", "pytest", HERE, "tests/unit/domain", "--co", "-q", "--part", "alone"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "1/" in ran.stdout.splitlines()[-1] and "tests/unit/domain" not in ran.stdout
    assert "deselected" in ran.stdout, "the other tests of this file were looked at"


def test_a_folder_runs_by_its_name_and_a_wrong_name_lists_them() -> None:
    def make(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)

    dry = make("--dry-run", "test-unit", "PYTEST_ARGS=-k bits").stdout
    assert "scripts.suite full tests/unit -k bits" in dry
    wrong = make("test-nothing")
    assert wrong.returncode == 2
    assert {"unit", "e2e", "sandbox"} <= set(wrong.stdout.split())
    assert "tests/gpu" in make("--dry-run", "test-gpu").stdout
