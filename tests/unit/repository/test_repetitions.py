"""What the gate leaves to the night: never a kind, never a hostile kernel; at night nothing is left out."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from testbed import repetitions
from testbed.kernels.kernel_styles import BACKENDS, chosen_corpus, corpus
from testbed.repetitions import examples, share

ROOT = Path(__file__).resolve().parents[3]
OWN_COUNT = {"testbed/repetitions.py", "tests/service/model_check.py"}
"""The one place that scales, and a program that runs for as long as it is told."""
CASES = [(n, n % 2, "rare" if n == 77 else "common") for n in range(103)]


@pytest.fixture(params=["", "0", "1"])
def night(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the variable says that this is the run with everything."""
    monkeypatch.setenv(repetitions.VARIABLE, request.param)
    return bool(request.param == "1")


def test_at_night_everything_is_selected(night: bool) -> None:
    assert (share(CASES, lambda case: case[1:]) == CASES) == night
    assert (repetitions.repetitions(400) == 400) == night
    assert (examples(400).max_examples == 400) == night
    for backend in BACKENDS:
        assert (list(chosen_corpus(backend)) == list(corpus(backend))) == night


def test_the_gate_takes_a_fifth_at_least_and_one_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(repetitions.VARIABLE, raising=False)
    taken = share(CASES, lambda case: case[1:])
    assert len(CASES) / 5 <= len(taken) <= len(CASES) / 5 + 3
    assert {case[1:] for case in taken} == {case[1:] for case in CASES}
    assert taken == sorted(taken) and taken == share(iter(CASES), lambda case: case[1:])
    assert max(b[0] - a[0] for a, b in pairwise(taken)) == 5, "evenly spread"
    for backend in BACKENDS:
        some, every = list(chosen_corpus(backend)), list(corpus(backend))
        assert len(every) / 5 <= len(some) < len(every) / 2
        for kind in ("kind", "style", "finish"):
            assert {str(getattr(w, kind)) for w in some} == {str(getattr(w, kind)) for w in every}


@pytest.mark.parametrize(("count", "least", "gate"), [(400, 10, 80), (25, 10, 10), (4, 10, 4), (7, 2, 2)])
def test_few_repetitions_stay_few(count: int, least: int, gate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(repetitions.VARIABLE, raising=False)
    assert repetitions.repetitions(count, least) == gate


def test_no_test_counts_its_examples_by_itself() -> None:
    files = [p for folder in ("tests", "testbed") for p in (ROOT / folder).rglob("*.py")]
    found = {str(p.relative_to(ROOT)) for p in files if re.search(r"\bmax_examples=[^=]", p.read_text())}
    assert found == OWN_COUNT


@pytest.mark.parametrize("folder", ["tests/sandbox", "tests/adversarial", "testbed/adversarial"])
def test_no_share_is_taken_of_hostile_kernels(folder: str) -> None:
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    assert [p for p in files if re.search(r"repetitions import .*share", p.read_text())] == []


def test_the_nightly_target_runs_both_parts_with_everything() -> None:
    words = ["make", "--dry-run", "test-nightly", "PYTEST_ARGS=-k bits"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "WARPSMITH_NIGHTLY=1" in said
    assert re.search(r"scripts\.suite full .*-k bits", said)


MARKED = [p for p in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.nightly" in p.read_text()]
WHOLE = re.compile(r"^@pytest\.mark\.nightly\n(?:@.*\n)*def (test_\w+)", re.M)
"""A test of which every case is for the night."""


def collected(files: list[Path], night: str) -> set[tuple[str, str, str]]:
    """The tests of these files that a run would have: file, function and case."""
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", *(str(f) for f in files)]
    environment = {**os.environ, repetitions.VARIABLE: night}
    said = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    return {match.groups() for match in re.finditer(r"^(\S+\.py)::(\w+)(.*)$", said, re.M)}  # type: ignore[misc]


def test_what_runs_at_night_only_has_a_sibling_in_the_gate() -> None:
    """A test of the same file and, unless the whole test is for the night, another case of the test."""
    mine = Path(__file__)
    marked = [path for path in MARKED if path != mine]
    gate, night = collected(marked, "0"), collected(marked, "1")
    assert gate < night
    assert {str(path.relative_to(ROOT)) for path in marked} == {file for file, _, _ in gate}
    whole = {(str(p.relative_to(ROOT)), name) for p in marked for name in WHOLE.findall(p.read_text())}
    lost = {(file, name) for file, name, _ in night} - {(file, name) for file, name, _ in gate}
    assert lost == whole


@pytest.mark.parametrize("folder", ["sandbox", "adversarial"])
def test_no_hostile_kernel_waits_for_the_night(folder: str) -> None:
    assert [path for path in MARKED if folder in path.relative_to(ROOT).parts] == []
