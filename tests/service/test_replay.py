"""Recorded timings as a device: what it answers, who may use it, and that it says what it is."""

import gzip
import json
import time
from pathlib import Path

import pytest

from api.routes.service_checks import check_job
from testbed.deadlines import stretched
from testbed.fakes import ListSink
from testbed.recordings import DEVICE, PARAMETERS, milliseconds, replay_job, write_recording
from warpsmith.backends import replay
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import Measured, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput, Unavailable
from warpsmith.settings import Settings
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.trials.slice import SliceLimits, SliceStart, run_slice
from worker.device.device_setup import DeviceSetup, open_setup


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recording(tmp_path_factory.mktemp("recordings"))


def replay_setup(folder: Path, trial_s: float = 0.0) -> DeviceSetup:
    (device,) = replay.probe(folder)
    settings = Settings(_env_file=None, replay_dir=folder, replay_trial_s=trial_s)
    return open_setup(settings, device)


def test_a_search_hears_the_recorded_times(folder: Path) -> None:
    job = Job.model_validate(replay_job(searcher="random"))
    setup = replay_setup(folder)
    session = DeviceSession(job, setup.ports)
    baseline = measure_baseline(session)
    assert not baseline.refused
    default: Configuration = {n: v[0] for n, v in PARAMETERS.items()}
    assert baseline.timings[0].cold is not None
    expected_ms = milliseconds(default)
    assert isinstance(expected_ms, float)
    assert baseline.timings[0].cold.median_us == pytest.approx(expected_ms * 1000)
    template = Template(kernel=job.kernel, space=job.space)
    search = setup.search(job, template, list)
    assert search.feasible == 11520
    sink = ListSink()
    result = run_slice(session, template, baseline, search.searcher, sink, SliceLimits(60, 1200, 1))
    assert result.trials == 1200
    for configuration, outcome in sink.trials:
        recorded = milliseconds({n: int(v) for n, v in configuration.items()})
        if isinstance(recorded, str):
            assert isinstance(outcome, Rejected)
            assert outcome.stage is Stage.RUN
            assert recorded in outcome.reason
        else:
            assert isinstance(outcome, Measured)
            assert outcome.objective == pytest.approx(recorded / expected_ms)


def test_a_trial_takes_the_time_that_was_set(folder: Path) -> None:
    job = Job.model_validate(replay_job())
    setup = replay_setup(folder, trial_s=0.05)
    session = DeviceSession(job, setup.ports)
    baseline = measure_baseline(session)
    template = Template(kernel=job.kernel, space=job.space)
    searcher = setup.search(job, template, list).searcher
    began = time.monotonic()
    run_slice(
        session, template, baseline, searcher, ListSink(), SliceLimits(60, 10, 1), SliceStart(gate=False)
    )
    assert 0.4 < time.monotonic() - began < stretched(1.5)


def test_a_published_recording_is_read(tmp_path: Path) -> None:
    data = {
        "tune_params": {"x": [16, 32], "pad": [0]},
        "cache": {
            "16,0": {"x": 16, "pad": 0, "time": 1.5},
            "32,0": {"x": 32, "pad": 0, "time": "Compilation"},
        },
    }
    path = tmp_path / "conv-RTX_3090.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    (device,) = replay.probe(tmp_path)
    assert (device.backend, device.name, device.device_class) == (
        Backend.REPLAY,
        "RTX_3090",
        "replay-rtx-3090-recorded",
    )
    recording = replay.load_recording(path)
    assert recording.look_up({"x": 16}) == {"": 1500.0}
    failed, unknown = recording.look_up({"x": 32}), recording.look_up({"x": 64})
    assert isinstance(failed, Rejected)
    assert failed.stage is Stage.COMPILE
    assert isinstance(unknown, Rejected)
    assert unknown.stage is Stage.SPACE


@pytest.mark.parametrize("early", [True, False])
def test_a_search_of_a_smooth_space_ends_by_itself_unless_it_is_told_not_to(
    folder: Path, early: bool
) -> None:
    budget = {"trials": 1000, "seconds": 60, "stop_early": early}
    job = Job.model_validate(replay_job(searcher="default", budget=budget))
    search = replay_setup(folder).search(job, Template(kernel=job.kernel, space=job.space), list)
    asked = 0
    while asked < 250 and (configurations := search.searcher.ask(1)):
        asked += 1
        found = milliseconds(configurations[0])
        search.searcher.tell(configurations[0], found if isinstance(found, float) else None)
    assert (asked == 250) is not early


def test_a_folder_without_recordings_is_no_device(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no NAME-DEVICE"):
        replay.probe(tmp_path)
    path = tmp_path / "a-b.json"
    path.write_text("[]")
    with pytest.raises(Unavailable, match=r"a-b\.json is not a recording"):
        replay.load_recording(path)


def test_a_kernel_that_was_not_recorded_is_refused_in_words(folder: Path) -> None:
    job = Job.model_validate(replay_job())
    job = job.model_copy(update={"kernel": job.kernel.model_copy(update={"entry": "other"})})
    baseline = measure_baseline(DeviceSession(job, replay_setup(folder).ports))
    assert f"there is no recording of 'other' on {DEVICE}" in baseline.refused


def test_only_the_operator_enables_it(folder: Path) -> None:
    job = Job.model_validate(replay_job())
    with pytest.raises(InvalidInput, match="has not enabled it") as caught:
        check_job(job, Settings(_env_file=None))
    assert caught.value.field == "kernel.backend"
    enabled = Settings(_env_file=None, replay_dir=folder)
    check_job(job, enabled)
    with pytest.raises(InvalidInput, match="set it to false"):
        check_job(Job.model_validate(replay_job(rewrite={"enabled": True})), enabled)
    (device,) = replay.probe(folder)
    with pytest.raises(Unavailable, match="WARPSMITH_REPLAY_DIR"):
        open_setup(Settings(_env_file=None), device)
