"""Mistakes of a first job: which `validate` names, in which words, at which line."""

from pathlib import Path

import pytest

from benchmarks.first_hour.mistake_list import JOB, MISTAKES, SOURCE, SOURCE_NAME, FoundBy, Mistake
from benchmarks.first_hour.mistakes import RESULT, devices_here, look
from warpsmith.cli.validate import Wishes, validate
from warpsmith.settings import Settings

LEAST_NAMED = 35


def test_there_are_forty_and_most_need_no_tuning() -> None:
    assert len({m.title for m in MISTAKES}) == 40
    assert sum(m.by is not FoundBy.TUNE for m in MISTAKES) >= LEAST_NAMED


def test_the_job_without_a_mistake_has_none(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    (tmp_path / SOURCE_NAME).write_text(SOURCE)
    settings = Settings(_env_file=None)
    report = validate(path, Wishes(settings, compiles=True, probe=devices_here))
    assert report.findings == []
    assert report.reference == "ran, with n=65536"
    assert report.compiled.startswith("compiled for ")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_is_named_with_its_line_or_left_to_a_launch(mistake: Mistake, tmp_path: Path) -> None:
    said = look(mistake, tmp_path / "job")
    told = [f"{f.line}: {f}" for f in said.report.findings]
    if mistake.by is FoundBy.TUNE:
        assert said.report.valid, told
        return
    assert said.named is not None, told
    assert said.report.valid is not mistake.is_error
    # Nothing else is called wrong beside it.
    assert [f for f in said.report.findings if f.is_error and f is not said.named] == []


def test_the_record_has_every_mistake() -> None:
    rows = [line for line in RESULT.read_text().splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [m.title for m in MISTAKES]
