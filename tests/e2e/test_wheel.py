"""The wheel in an environment of its own: all of the product works there, away from the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from testbed.deadlines import HANGS_S, comes_true, stretched
from testbed.servers import free_port
from tests.unit.repository.test_packaging import PROJECT, closure, of_extra

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "examples" / "silu_and_mul" / "opencl.yaml"
IMPORT_S = 0.3
SCRIPT = """
import numpy as np
import warpsmith

def reference(x):
    return 2 * x

x = np.random.default_rng(0).normal(size=5000).astype(np.float32)
arguments = {"x": x, "y": np.empty_like(x)}
launch = {"grid": "ceil_div(n, 64)", "block": 64}
budget = {"seconds": 600, "trials": 3, "rounds": 1}
result = warpsmith.tune("twice.cl", arguments, {"n": 5000}, reference=reference, **launch, **budget)
print(result.state.value, len(result.trials))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with the wheel, its extra `opencl`, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment")
    found = folder / "environment" / "bin" / "python"
    ran = pip(found, "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    assert ran.returncode == 0, ran.stderr
    copy_libraries(next((folder / "environment" / "lib").glob("python*/site-packages")))
    return found


def pip(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Our own pip, at work in the environment of that interpreter."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        str(python),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def copy_libraries(to: Path) -> None:
    """Requirements of the extra `opencl`, taken from this environment; no index is asked."""
    core = [Requirement(text) for text in PROJECT["dependencies"]]
    for name in closure(core + of_extra("opencl")):
        for file in files(name) or ():
            # Programs lie elsewhere, and name this environment's interpreter.
            if ".." not in file.parts and (source := Path(str(file.locate()))).exists():
                (to / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, to / file)


def clean(folder: Path) -> dict[str, str]:
    """An environment that does not lead to the checkout."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"WARPSMITH_DATA_DIR": str(folder / "data")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with packages that have the names of ours, and a small job."""
    for name in ("agents", "api", "db", "worker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    job = yaml.safe_load(JOB.read_text())
    job["kernel"]["source"] = (JOB.parent / job["kernel"].pop("source_file")).read_text()
    job["workloads"] = job["workloads"][:1]
    job["budget"] = {"trials": 3, "seconds": 600}
    (tmp_path / "job.json").write_text(json.dumps(job))
    return tmp_path


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the environment."""
    program, *rest = arguments
    return subprocess.run(
        [str(python.parent / program), *rest],
        cwd=folder,
        env=clean(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


@contextmanager
def serving(python: Path, folder: Path) -> Iterator[str]:
    """The embedded service of the environment; its address."""
    port = free_port()
    command = [str(python.parent / "warpsmith"), "serve", "--port", str(port)]
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=clean(folder), stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(HANGS_S)


def test_its_libraries_fit_each_other_and_none_is_of_the_checkout(python: Path, tmp_path: Path) -> None:
    checked = pip(python, "check")
    assert checked.returncode == 0, checked.stdout
    names = {package["name"].lower() for package in json.loads(pip(python, "list", "--format=json").stdout)}
    assert "pyopencl" in names
    assert names & {"psycopg", "redis", "openai", "pycuda", "pytest"} == set()
    documented = re.search(r"with `opencl`, (\d+)", (ROOT / "docs" / "installing.md").read_text())
    assert documented is not None
    assert len(names) <= int(documented.group(1)), sorted(names)
    where = run(python, tmp_path, "python", "-c", "import warpsmith; print(warpsmith.__file__)")
    assert str(python.parents[1]) in where.stdout


def test_its_import_is_quick_and_loads_no_service(python: Path, tmp_path: Path) -> None:
    code = "import sys, time; import warpsmith; print(time.process_time(), *sys.modules)"
    seconds = []
    for _ in range(5):
        ran = run(python, tmp_path, "python", "-c", code)
        took, *modules = ran.stdout.split()
        seconds.append(float(took))
        assert {"celery", "fastapi", "sqlalchemy", "optuna"} & set(modules) == set()
    assert min(seconds) < stretched(IMPORT_S)


def test_it_tunes_an_example(python: Path, folder: Path) -> None:
    ran = run(python, folder, "warpsmith", "tune", "job.json", "--out", "out")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    result = json.loads((folder / "out" / "result.json").read_text())
    assert result["state"] == "done"
    assert result["trials_measured"] >= 1


def test_ten_lines_of_python_tune(python: Path, folder: Path) -> None:
    (folder / "twice.cl").write_text(
        "__kernel void twice(__global const float* x, __global float* y, const int n) {\n"
        "  int i = get_global_id(0);\n  if (i < n) y[i] = 2.0f * x[i];\n}\n"
    )
    (folder / "script.py").write_text(SCRIPT)
    ran = run(python, folder, "python", "script.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("done "), ran.stdout + ran.stderr


def test_its_service_takes_a_job(python: Path, folder: Path) -> None:
    with serving(python, folder) as url:
        assert comes_true(
            lambda: run(python, folder, "warpsmith", "workers", "--url", url).stdout.count("alive") == 1,
            HANGS_S,
        ), (folder / "service.log").read_text()
        sent = run(python, folder, "warpsmith", "submit", "job.json", "--url", url)
        assert sent.returncode == 0, sent.stderr
        job = sent.stdout.strip()

        def begun() -> bool:
            shown = run(python, folder, "warpsmith", "status", job, "--json", "--url", url)
            return bool(json.loads(shown.stdout)["state"] != "queued")

        assert comes_true(begun, HANGS_S)
        ended = run(python, folder, "warpsmith", "cancel", job, "--url", url)
        assert ended.stdout.strip() == "cancelled", ended.stderr


def test_the_doctor_says_that_it_can_tune(python: Path, folder: Path) -> None:
    ran = run(python, folder, "warpsmith", "doctor", "--json")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    found = json.loads(ran.stdout)
    states = {check["subject"]: check["state"] for check in found["checks"]}
    assert found["can_tune"] is True
    assert states["opencl device"] == states["PoCL"] == states["service"] == "ok"
    assert states["database"] == states["broker"] == states["model"] == "not used"


def test_it_migrates_a_database(python: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_DATABASE_URL", f"sqlite:///{folder / 'fleet.db'}")
    ran = run(python, folder, "warpsmith", "migrate")
    assert ran.returncode == 0, ran.stderr
    assert " is at revision r" in ran.stdout
