"""The wheel in an environment of its own: it tunes there, away from the checkout, whatever lies beside it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
import yaml

from testbed.deadlines import HANGS_S

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "examples" / "silu_and_mul" / "opencl.yaml"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that has the wheel, and our libraries without the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=True)
    found = folder / "environment" / "bin" / "python"
    install = [str(found), "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    purelib = [str(found), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(purelib, check=True, capture_output=True, text=True).stdout.strip()
    # A path file of a folder that is named in a path file is not read: that of the checkout has no effect.
    libraries = [p for p in sys.path if Path(p, "celery").is_dir()] or [sysconfig.get_path("purelib")]
    Path(site, "libraries.pth").write_text("\n".join(libraries) + "\n")
    return found


def run(python: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a folder whose packages have the names of ours."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["WARPSMITH_DATA_DIR"] = str(folder / "data")
    return subprocess.run(
        [str(python.parent / "warpsmith"), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


def test_it_tunes_an_example(python: Path, tmp_path: Path) -> None:
    for name in ("agents", "api", "db", "worker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('the wrong {name}')\n")
    where = subprocess.run(
        [python, "-c", "import warpsmith; print(warpsmith.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(python.parents[1]) in where.stdout, "the checkout's own is not meant"
    job = yaml.safe_load(JOB.read_text())
    job["kernel"]["source"] = (JOB.parent / job["kernel"].pop("source_file")).read_text()
    job["workloads"] = job["workloads"][:1]
    job["budget"] = {"trials": 3, "seconds": 60}
    (tmp_path / "job.json").write_text(json.dumps(job))
    ran = run(python, tmp_path, "tune", "job.json", "--out", "out")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["state"] == "done"
    assert result["trials_measured"] >= 1
