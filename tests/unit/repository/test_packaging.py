"""What is installed where: the wheel, the locked requirements, and what each image may import."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agents.providers.model_transport import OpenAITransport
from testbed.deadlines import HANGS_S
from warpsmith.backends.cuda import backend as cuda
from warpsmith.commit import FILE, UNKNOWN, commit_name
from warpsmith.errors import Unavailable
from warpsmith.extras import BRINGERS, EMBEDDED, naming_extras

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
    assert "warpsmith/report/parts/vendor/uplot/uPlot.iife.min.js" in wanted
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
    for application in ("agents", "api", "db", "examples", "worker"):
        files = [p for p in (ROOT / application).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        assert len(files) > 10
        assert {f"warpsmith/_apps/{p.relative_to(ROOT)}" for p in files} - packed == set()


def test_a_client_needs_no_library_of_the_service() -> None:
    run = command_without(BRINGERS, "validate", "examples/silu_and_mul/opencl.yaml")
    assert run.returncode == 0, run.stderr
    assert "configurations of the template" in run.stdout


def command_without(
    modules: Iterable[str], *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command line where these modules cannot be imported."""
    code = (
        "import sys\nfor name in sys.argv[1].split(): sys.modules[name] = None\n"
        "from warpsmith.cli import main; main(sys.argv[2:])"
    )
    return subprocess.run(
        [sys.executable, "-c", code, " ".join(modules), *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


POSTGRES = {"WARPSMITH_DATABASE_URL": "postgresql+psycopg://nobody@127.0.0.1:1/none"}
REDIS = {"WARPSMITH_BROKER_URL": "redis://127.0.0.1:1/0"}
MODEL = {"WARPSMITH_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
JOB = "examples/silu_and_mul/opencl.yaml"
OF_FLEETS = "install warpsmith[serve] or warpsmith[worker]"
TO_TUNE = "install warpsmith[opencl], warpsmith[pycuda]"


@pytest.mark.parametrize(
    ("missing", "arguments", "environment", "words"),
    [
        ("celery", ("tune", JOB), {}, TO_TUNE),
        ("structlog", ("tune", JOB), {}, TO_TUNE),
        ("openai", ("tune", JOB), MODEL, "install warpsmith[models]"),
        ("fastapi", ("demo",), {}, TO_TUNE),
        ("uvicorn", ("serve",), {}, TO_TUNE),
        ("structlog", ("serve",), {}, TO_TUNE),
        ("psycopg", ("serve",), POSTGRES, OF_FLEETS),
        ("redis", ("serve",), REDIS, OF_FLEETS),
        ("alembic", ("worker",), {"WARPSMITH_ALLOW_ROOT": "true"}, TO_TUNE),
        ("psycopg", ("worker",), POSTGRES, OF_FLEETS),
        ("redis", ("worker",), REDIS, OF_FLEETS),
        ("openai", ("worker", "--queues", "agents"), MODEL, "install warpsmith[models]"),
        ("sqlalchemy", ("keys", "list"), {}, TO_TUNE),
        ("psycopg", ("keys", "list"), POSTGRES, OF_FLEETS),
        ("psycopg", ("drain", "any"), POSTGRES, OF_FLEETS),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_a_command_names_the_extra_of_what_is_missing(
    missing: str, arguments: tuple[str, ...], environment: dict[str, str], words: str, tmp_path: Path
) -> None:
    ran = command_without([missing], *arguments, **environment, WARPSMITH_DATA_DIR=str(tmp_path))
    assert ran.returncode == 3, ran.stderr + ran.stdout
    assert f"error: {missing} is missing; {words}" in ran.stderr


def test_a_model_that_is_asked_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(Unavailable, match=r"openai is missing; install warpsmith\[models\]"):
        OpenAITransport("http://127.0.0.1:1/v1", "")


def test_another_missing_module_is_our_fault_and_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="nonesuch"), naming_extras():
        import_module("nonesuch")


def extras() -> dict[str, list[Requirement]]:
    """The requirements of the extras, without those that they take from each other."""
    found = PROJECT["optional-dependencies"]
    return {extra: [r for r in map(Requirement, found[extra]) if r.name != "warpsmith"] for extra in found}


def of_extra(extra: str) -> list[Requirement]:
    """Everything that an extra asks for, also through other extras."""
    wanted = [Requirement(text) for text in PROJECT["optional-dependencies"][extra]]
    own = [r for r in wanted if r.name != "warpsmith"]
    return own + [inner for r in wanted if r.name == "warpsmith" for e in r.extras for inner in of_extra(e)]


def closure(requirements: Iterable[Requirement]) -> dict[str, set[str]]:
    """Every distribution that these requirements install here, and with which of its own extras."""
    found: dict[str, set[str]] = {}
    waiting = [(requirement, {""}) for requirement in requirements]
    while waiting:
        requirement, chosen = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in chosen):
            continue
        name = canonicalize_name(requirement.name)
        if name in found and requirement.extras <= found[name]:
            continue
        with_extras = found.setdefault(name, set())
        with_extras |= requirement.extras
        waiting += [(Requirement(text), {"", *with_extras}) for text in requires(name) or ()]
    return found


def test_an_extra_brings_the_modules_that_it_is_named_for() -> None:
    tops = packages_distributions()
    for module, named in BRINGERS.items():
        if module in ("pycuda", "hip", "opentelemetry.sdk", "opentelemetry.exporter"):
            continue  # not installed here, and one name of several distributions
        distributions = {canonicalize_name(name) for name in tops[module]}
        for extra in named:
            installed = set(closure(r for r in of_extra(extra) if r.name != "pycuda"))
            assert distributions & installed, f"{extra} does not bring {module}"
    assert "pycuda" in {r.name for r in of_extra("pycuda")}
    assert "hip-python" in {r.name for r in of_extra("hip")}


def test_the_embedded_mode_is_what_its_extra_brings() -> None:
    modules = {r.name.replace("-", "_") for r in of_extra("embedded")} - {"opentelemetry_api"}
    assert set(EMBEDDED) == modules


def test_extras_agree_on_the_versions_of_a_library() -> None:
    wanted: dict[str, set[str]] = {}
    for requirement in (r for found in extras().values() for r in found):
        wanted.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name: found for name, found in wanted.items() if len(found) > 1} == {}


@pytest.mark.parametrize(("extra", "words"), [("", "Plain, "), ("opencl", "with `opencl`, ")])
def test_an_installation_has_no_more_packages_than_is_documented(extra: str, words: str) -> None:
    core = [Requirement(text) for text in PROJECT["dependencies"]]
    installed = closure([*core, *(of_extra(extra) if extra else ())])
    documented = re.search(rf"{words}(\d+)", (ROOT / "docs" / "installing.md").read_text())
    assert documented is not None
    assert len(installed) + 1 <= int(documented.group(1)), sorted(installed)


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


@pytest.mark.parametrize("name", ["api.app", "worker.main", "warpsmith.sandbox.children.device_child"])
def test_what_is_needed_only_at_times_is_not_imported_at_first(name: str) -> None:
    seldom = ["alembic", "openai", "optuna", "polars", "psycopg", "redis", "scipy", "typer", "urllib3"]
    seldom += ["sqlalchemy.dialects.postgresql", "warpsmith.cli", "warpsmith.report.bundle"]
    run = python(f"import sys, {name}; print([m for m in {seldom!r} if m in sys.modules])")
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_without_pycuda_the_cuda_back_end_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module imports anywhere; using it names the missing package."""
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(Unavailable, match=r"cuda: install warpsmith\[pycuda\]"):
        cuda.probe()
    with pytest.raises(Unavailable, match=r"cuda: install warpsmith"):
        cuda.open_device(0)


def test_importing_the_cuda_back_end_needs_no_cuda_package() -> None:
    run = python(
        "import sys\n"
        "for name in ('pycuda', 'cuda', 'pynvml'): sys.modules[name] = None\n"
        "from warpsmith.backends.cuda import backend as cuda\n"
        "from warpsmith.errors import Unavailable\n"
        "try: cuda.probe()\n"
        "except Unavailable as exc: print(exc)\n"
    )
    assert run.returncode == 0, run.stderr
    assert "install warpsmith[pycuda]" in run.stdout


@pytest.mark.parametrize("target", ["setup", "demo"])
def test_every_environment_of_the_makefile_has_the_command(target: str, tmp_path: Path) -> None:
    asked = ["make", "--dry-run", f"VENV={tmp_path}", target]
    made = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=HANGS_S)
    (written,) = [line for line in made.stdout.splitlines() if line.endswith(f"> {tmp_path}/bin/warpsmith")]
    assert '-m warpsmith "$@"' in written
    assert f"chmod +x {tmp_path}/bin/warpsmith" in made.stdout
