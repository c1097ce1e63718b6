"""Mistakes of a first job: `validate` names each in these words, at its line."""

from functools import cache
from pathlib import Path

import pytest

from tests.unit.cli.first_job_mistakes import JOB, MISTAKES, SOURCE, SOURCE_NAME, Mistake
from warpsmith.cli.validate import Report, Wishes, validate
from warpsmith.domain.device import Backend
from warpsmith.sandbox.hosts.device_host import Probe, probe_devices
from warpsmith.settings import Settings

MEMORY_BYTES = 8 * 10**9


@cache
def devices_here() -> Probe:
    """OpenCL devices of this machine, as if each had 8 GB and there were no CUDA; asked once."""
    here = probe_devices()
    small = tuple(
        d.model_copy(update={"limits": d.limits.model_copy(update={"total_memory_bytes": MEMORY_BYTES})})
        for d in here.devices
        if d.backend is not Backend.CUDA
    )
    return Probe(small, {**here.unavailable, "cuda": "cuda: no driver"})


def said(job: str, source: str, folder: Path, *, compiles: bool) -> Report:
    """What `validate` says of a job whose source lies beside it."""
    path = folder / "job.yaml"
    path.write_text(job)
    (folder / SOURCE_NAME).write_text(source)
    return validate(path, Wishes(Settings(_env_file=None), compiles, probe=devices_here))


def test_the_job_without_a_mistake_has_none(tmp_path: Path) -> None:
    report = said(JOB, SOURCE, tmp_path, compiles=True)
    assert report.findings == []
    assert report.reference == "ran, with n=65536"
    assert report.compiled.startswith("compiled for ")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.title)
def test_a_mistake_is_named_with_its_line(mistake: Mistake, tmp_path: Path) -> None:
    report = said(mistake.job(), mistake.source(), tmp_path, compiles=mistake.compiles)
    told = [f"{f.line}: {f}" for f in report.findings]
    at = (mistake.line(), mistake.is_error)
    named = [f for f in report.findings if mistake.says in str(f) and (f.line, f.is_error) == at]
    assert named, told
    assert report.valid is not mistake.is_error
    # Nothing else is called wrong beside it.
    assert [f for f in report.findings if f.is_error and f is not named[0]] == [], told
