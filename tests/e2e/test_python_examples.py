"""The scripts of `examples/python` that talk to a service, as a user runs them, on PoCL."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.deadlines import HANGS_S
from testbed.example_jobs import load_example, small
from testbed.service import Service
from warpsmith.client import Client
from warpsmith.domain.job import Job
from warpsmith.domain.state import JobState
from warpsmith.python.result import Result
from warpsmith.testing.jobs import scale_job

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "python"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One `warpsmith serve --embedded`."""
    running = Service(tmp_path_factory.mktemp("data")).start()
    yield running
    running.stop()


def job_file(folder: Path, name: str) -> Path:
    """The file of a small job that ends within seconds."""
    workloads = [{"dimensions": {"n": 4096}}]
    job = scale_job(name=name, workloads=workloads, budget={"trials": 3, "seconds": 30})
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job.model_dump(mode="json", exclude_unset=True)))
    return path


def small_job(**changes: object) -> Job:
    """An example without parameters of its own, on small shapes."""
    job = small(load_example("silu_and_mul", "opencl"), "silu_and_mul")
    return Job.model_validate(job.model_dump() | changes)


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the examples to its end."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    return subprocess.run(
        [sys.executable, str(SCRIPTS / script), *map(str, arguments)],
        env=kept | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def test_a_fleet_of_jobs_is_tuned_and_the_same_files_are_the_same_jobs(
    service: Service, tmp_path: Path
) -> None:
    files = [job_file(tmp_path, name) for name in ("first", "second")]
    ran = run("fleet.py", *files, "--url", service.url, "--out", tmp_path / "out")
    assert (ran.returncode, ran.stderr) == (0, ""), service.logs()
    rows = ran.stdout.splitlines()
    assert rows[0].split() == ["job", "speed-up", "faster", "on", "why", "it", "ended"]
    assert [row.split()[0] for row in rows[1:]] == ["first", "second"]
    assert all(row.split()[1].endswith("x") for row in rows[1:])
    results = [Result.load(folder) for folder in (tmp_path / "out").iterdir()]
    assert {r.job.name: r.state for r in results} == {"first": JobState.DONE, "second": JobState.DONE}
    assert all(r.trials for r in results)
    again = run("fleet.py", *files, "--url", service.url)
    assert again.stdout == ran.stdout
    with Client(service.url) as client:
        assert len(list(client.all_jobs(name="first"))) == 1


def test_a_fleet_says_what_is_wrong_with_a_file(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: a/b\n")
    ran = run("fleet.py", path, "--url", service.url)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert "name" in ran.stderr


def test_a_script_answers_an_agent_s_question(service: Service, tmp_path: Path) -> None:
    agents = {"provider": "rules", "roles": {"templater": "external"}}
    with Client(service.url) as client:
        job_id = client.submit(small_job(agents=agents, budget={"trials": 3, "seconds": 30})).id
        ran = run("answer_questions.py", "--job", job_id, "--url", service.url)
        assert (ran.returncode, ran.stderr) == (0, ""), service.logs()
        assert f"templater of job {job_id}, round 1: answered\n" in ran.stdout
        steps = [s for s in client.agent_steps(job_id).items if s.provider == "external"]
        assert {(s.role, s.model) for s in steps} == {("templater", "answer_questions.py")}
        assert str(client.result_of(job_id)) in ran.stdout
