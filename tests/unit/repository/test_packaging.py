"""What is installed where: the wheel, the locked requirements, and what each image may import."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.deadlines import HANGS_S
from warpsmith.backends import cuda
from warpsmith.commit import FILE, UNKNOWN, commit_name
from warpsmith.errors import Unavailable

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
DEVICE_MODULES = ("pyopencl", "pycuda", "cuda", "pynvml")

PINNED = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,-]+\])?==[A-Za-z0-9.+!-]+( ; .+)?( --hash=sha256:[0-9a-f]{64})+"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built by the build back end alone: no index, no isolated environment."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def entries(path: Path) -> list[str]:
    """The requirements of a lock, each joined to one line."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [line for line in joined.splitlines() if line.strip()]


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that sees this tree."""
    return subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


def test_the_wheel_has_one_top_level_name(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/", 1)[0] for name in wheel.namelist()}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"warpsmith", metadata}


def test_every_module_and_data_file_of_the_core_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    kept = {p for p in (ROOT / "warpsmith").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    wanted = {str(p.relative_to(ROOT)) for p in kept}
    assert "warpsmith/py.typed" in wanted
    assert "warpsmith/report/templates/report.html.jinja" in wanted
    assert wanted - set(wheel.namelist()) == set()


def test_the_wheel_carries_its_licence_and_command(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    (licence,) = (n for n in names if n.endswith(".dist-info/licenses/LICENSE"))
    assert "Apache License" in wheel.read(licence).decode()
    (commands,) = (n for n in names if n.endswith(".dist-info/entry_points.txt"))
    assert "warpsmith = warpsmith.cli:main" in wheel.read(commands).decode()


def test_the_wheel_names_its_commit(wheel: zipfile.ZipFile) -> None:
    assert commit_name() != UNKNOWN
    assert wheel.read(f"warpsmith/{FILE}").decode() == f"{commit_name()}\n"


def test_every_file_of_the_applications_is_in_the_wheel_below_the_core(wheel: zipfile.ZipFile) -> None:
    packed = set(wheel.namelist())
    for application in ("agents", "api", "db", "worker"):
        files = [p for p in (ROOT / application).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        assert len(files) > 10
        assert {f"warpsmith/_apps/{p.relative_to(ROOT)}" for p in files} - packed == set()


def test_a_client_needs_no_library_of_the_service() -> None:
    blocked = "import sys\nfor name in sys.argv[1].split(): sys.modules[name] = None\n"
    code = blocked + "from warpsmith.cli import main; main(sys.argv[2:])"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = [re.split(r"[^a-z0-9-]", requirement, maxsplit=1)[0] for requirement in extras["service"]]
    assert {"celery", "fastapi", "optuna", "sqlalchemy"} <= set(names)
    modules = " ".join(name.replace("-", "_") for name in names)
    job = "examples/silu_and_mul/opencl.yaml"
    run = subprocess.run(
        [sys.executable, "-c", code, modules, "validate", job],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )
    assert run.returncode == 0, run.stderr
    assert "configurations of the template" in run.stdout


def test_there_are_locks() -> None:
    assert {p.stem for p in REQUIREMENTS} >= {"api", "worker-cpu", "worker-gpu", "node", "dev"}


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda p: p.stem)
def test_every_requirement_is_pinned_with_hashes(path: Path) -> None:
    found = entries(path)
    assert len(found) > 20
    assert [line for line in found if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda p: p.stem)
def test_no_lock_names_an_index_or_an_address(path: Path) -> None:
    text = path.read_text()
    assert [word for word in ("--index", "--extra-index", "--find-links", "-i ", "://") if word in text] == []


@pytest.mark.parametrize("name", ["api", "worker-cpu", "worker-gpu"])
def test_an_image_holds_only_the_device_libraries_it_needs(name: str) -> None:
    names = {re.split(r"[=\[]", line, maxsplit=1)[0] for line in entries(ROOT / f"requirements/{name}.txt")}
    expected = {
        "api": set(),
        "worker-cpu": {"pyopencl", "pocl-binary-distribution"},
        "worker-gpu": {"pycuda", "cuda-bindings"},
    }
    devices = {"pyopencl", "pocl-binary-distribution", "pycuda", "cuda-bindings"}
    assert names & devices == expected[name]


def test_the_api_imports_no_device_library() -> None:
    run = python(
        "import sys, api.app; api.app.create_app(); "
        f"bad = [m for m in sys.modules if m.split('.')[0] in {DEVICE_MODULES!r} "
        "or m.startswith(('warpsmith.backends', 'warpsmith.sandbox', 'worker'))]; print(sorted(bad))"
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_the_api_works_where_device_libraries_cannot_be_imported() -> None:
    run = python(
        "import sys\n"
        f"for name in {DEVICE_MODULES!r}: sys.modules[name] = None\n"
        "import api.app; print(len(api.app.create_app().openapi()['paths']))"
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 3


@pytest.mark.parametrize("name", ["worker.main", "worker.celery_tasks", "warpsmith.cli.app"])
def test_nothing_but_a_device_child_loads_a_device_library(name: str) -> None:
    run = python(
        f"import sys, {name}; print([m for m in sys.modules if m.split('.')[0] in {DEVICE_MODULES!r}])"
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_without_pycuda_the_cuda_back_end_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module imports anywhere; using it names the missing package."""
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(Unavailable, match=r"cuda: install PyCUDA, extra \[cuda\]"):
        cuda.probe()
    with pytest.raises(Unavailable, match=r"cuda: install PyCUDA"):
        cuda.open_device(0)


def test_importing_the_cuda_back_end_needs_no_cuda_package() -> None:
    run = python(
        "import sys\n"
        "for name in ('pycuda', 'cuda', 'pynvml'): sys.modules[name] = None\n"
        "from warpsmith.backends import cuda\n"
        "from warpsmith.errors import Unavailable\n"
        "try: cuda.probe()\n"
        "except Unavailable as exc: print(exc)\n"
    )
    assert run.returncode == 0, run.stderr
    assert "install PyCUDA, extra [cuda]" in run.stdout


@pytest.mark.parametrize("target", ["setup", "demo"])
def test_every_environment_of_the_makefile_has_the_command(target: str, tmp_path: Path) -> None:
    asked = ["make", "--dry-run", f"VENV={tmp_path}", target]
    made = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANGS_S)
    (written,) = [line for line in made.stdout.splitlines() if line.endswith(f"> {tmp_path}/bin/warpsmith")]
    assert '-m warpsmith "$@"' in written
    assert f"chmod +x {tmp_path}/bin/warpsmith" in made.stdout
