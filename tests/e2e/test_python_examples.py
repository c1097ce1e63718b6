"""The scripts and the notebook of `examples/python`, as a user runs them, on PoCL."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.deadlines import HANGS_S
from testbed.example_jobs import load_example, small
from testbed.service import Service
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.clients.python.result import Result
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
    job = scale_job(name=name, workloads=workloads, budget={"trials": 3, "seconds": 600})
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(job.model_dump(mode="json", exclude_unset=True)))
    return path


def small_job(**changes: object) -> Job:
    """An example without parameters of its own, on small shapes."""
    job = small(load_example("silu_and_mul", "opencl"), "silu_and_mul")
    return Job.model_validate(job.model_dump() | changes)


def python(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, in a folder whose modules come before others. A warning is an error."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WARPSMITH_")}
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        cwd=folder,
        env=kept | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def run(folder: Path, script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the examples to its end."""
    return python(folder, SCRIPTS / script, *arguments)


def ended_well(ran: subprocess.CompletedProcess[str]) -> None:
    """Check that a script has ended without an error, and has told its progress on standard error."""
    assert ran.returncode == 0, ran.stderr
    assert all(re.match(r"\w+: \d+ tried", line) for line in ran.stderr.splitlines()), ran.stderr


def test_a_fleet_of_jobs_is_tuned_and_the_same_files_are_the_same_jobs(
    service: Service, tmp_path: Path
) -> None:
    files = [job_file(tmp_path, name) for name in ("first", "second")]
    ran = run(tmp_path, "fleet.py", *files, "--url", service.url, "--out", tmp_path / "out")
    assert (ran.returncode, ran.stderr) == (0, ""), service.logs()
    rows = ran.stdout.splitlines()
    assert rows[0].split() == ["job", "speed-up", "faster", "on", "why", "it", "ended"]
    assert [row.split()[0] for row in rows[1:]] == ["first", "second"]
    assert all(row.split()[1].endswith("x") for row in rows[1:])
    results = [Result.load(folder) for folder in (tmp_path / "out").iterdir()]
    assert {r.job.name: r.state for r in results} == {"first": JobState.DONE, "second": JobState.DONE}
    assert all(r.trials for r in results)
    again = run(tmp_path, "fleet.py", *files, "--url", service.url)
    assert again.stdout == ran.stdout
    with Client(service.url) as client:
        assert len(list(client.all_jobs(name="first"))) == 1


def test_a_fleet_says_what_is_wrong_with_a_file(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: a/b\n")
    ran = run(tmp_path, "fleet.py", path, "--url", service.url)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert "name" in ran.stderr


def test_a_script_answers_an_agent_s_question(service: Service, tmp_path: Path) -> None:
    agents = {"provider": "rules", "roles": {"templater": "external"}}
    with Client(service.url) as client:
        job_id = client.submit(small_job(agents=agents, budget={"trials": 3, "seconds": 600})).id
        ran = run(tmp_path, "answer_questions.py", "--job", job_id, "--url", service.url)
        assert (ran.returncode, ran.stderr) == (0, ""), service.logs()
        assert f"templater of job {job_id}, round 1: answered\n" in ran.stdout
        steps = [s for s in client.agent_steps(job_id).items if s.provider == "external"]
        assert {(s.role, s.model) for s in steps} == {("templater", "answer_questions.py")}
        assert str(client.result_of(job_id)) in ran.stdout


def test_a_first_kernel_is_tuned_and_printed(tmp_path: Path) -> None:
    ran = run(tmp_path, "first_kernel.py")
    ended_well(ran)
    assert ran.stdout.startswith("matmul: ") and "k=128,m=96,n=160" in ran.stdout
    assert re.search(r"launch matmul with grid \(\d+, \d+, 1\) and block \(\d+, \d+, 1\)", ran.stdout)
    assert "__kernel" in ran.stdout.split("the source:")[1]


def test_a_script_compares_with_its_own_reference(tmp_path: Path) -> None:
    ran = run(tmp_path, "own_reference.py", "--seconds", "2")
    ended_well(ran)
    assert ran.stdout.startswith("rms_norm: ") and "columns=333,rows=200" in ran.stdout


@pytest.mark.nightly
def test_a_wrong_reference_fails_the_script(tmp_path: Path) -> None:
    text = (SCRIPTS / "own_reference.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text.replace("+ 1e-6) * weight", "+ 1e-6) + weight"))
    assert wrong.read_text() != text
    ran = python(tmp_path, "-W", "default", wrong)
    assert ran.returncode == 1 and "UserWarning: the job has failed: " in ran.stderr


def test_without_torch_a_script_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    ran = run(tmp_path, "torch_tensors.py")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "error: torch is missing; install it with: pip install torch\n"


@pytest.mark.nightly
def test_the_notebook_runs_from_above_to_below_and_is_stored_without_outputs(tmp_path: Path) -> None:
    notebook = SCRIPTS / "tuning.ipynb"
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in cells)
    ran = python(tmp_path, "-m", "tests.e2e.notebook_cells", notebook)
    ended_well(ran)
    shown = json.loads(ran.stdout)
    assert (
        "<table>" in shown["table"] and "scaled_sum: done" in shown["table"] and "n=100000" in shown["table"]
    )
    assert "'outcome': 'measured'" in shown["records"]
    assert shown["kernel-for"].startswith("scaled_sum (") and "__kernel" in shown["kernel-for"]
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.nightly
def test_the_program_of_the_page_for_users_of_kernel_tuner_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "kernel-tuner.md").read_text()
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert "seconds=20" in blocks["python"], "the last program of the page is Warpsmith's"
    (tmp_path / "matmul.cl").write_text(blocks["c"])
    program = blocks["python"].replace("seconds=20", "seconds=5") + "print(result.state.value)\n"
    ran = python(tmp_path, "-c", program)
    ended_well(ran)
    assert ran.stdout == "done\n"
