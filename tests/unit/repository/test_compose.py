"""The Dockerfile and the compose file against the program they start. Needs no Docker."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
import yaml
from sqlalchemy.engine import make_url
from typer.main import get_command

from db import migrate
from testbed.deadlines import Deadline, stretched
from testbed.servers import free_port
from warpsmith.cli.app import app
from warpsmith.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
FLEET = ROOT / "docs" / "fleet"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
EXAMPLE = (ROOT / ".env.example").read_text()
OURS = [name for name, service in SERVICES.items() if "build" in service]
TARGETS = ("api", "worker-cpu", "worker-gpu")
TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""OpenTelemetry's own name; see `warpsmith.system.tracing`."""
COMPOSES_OWN = {"COMPOSE_PROFILES", "POSTGRES_PASSWORD_FILE", "OPENAI_API_KEY_FILE", "WORKER_MEMORY"}
SETTINGS = {f"WARPSMITH_{name.upper()}": field for name, field in Settings.model_fields.items()}
PASSWORD = "chosen by the operator"
NOT_PASSED = {
    "WARPSMITH_DATA_DIR": "the image sets it",
    "WARPSMITH_DATABASE_URL_FILE": "the URL is compose's own",
    "WARPSMITH_BROKER_URL_FILE": "likewise",
    "WARPSMITH_OPENAI_API_KEY": "it comes as a file",
    "WARPSMITH_API_KEY": "of the command line",
    "WARPSMITH_API_KEY_FILE": "of the command line",
    "WARPSMITH_REPLAY_DIR": "of tests",
    "WARPSMITH_REPLAY_TRIAL_S": "of tests",
}
"""Settings that have no use in a container, and why."""
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<text>[^}]*))?\}")


class Stage:
    """One stage of the Dockerfile: its base, and its instructions in order."""

    def __init__(self, name: str, base: str) -> None:
        self.name = name
        self.base = base
        self.steps: list[tuple[str, str]] = []

    def all(self, instruction: str) -> list[str]:
        """What stands after every such instruction of this stage."""
        return [rest for word, rest in self.steps if word == instruction]


def read_stages() -> dict[str, Stage]:
    """The stages of the Dockerfile by name."""
    lines = [ln for ln in (ROOT / "Dockerfile").read_text().splitlines() if not ln.lstrip().startswith("#")]
    text = re.sub(r"\\\n", " ", "\n".join(lines))
    found: dict[str, Stage] = {}
    for line in filter(str.strip, text.splitlines()):
        word, rest = line.strip().split(None, 1)
        if word == "FROM":
            match = re.fullmatch(r"(\S+) AS (\S+)", rest)
            assert match, f"every stage has a name: {line}"
            current = found[match[2]] = Stage(match[2], match[1])
        elif word != "ARG" or found:
            current.steps.append((word, rest))
    return found


STAGES = read_stages()


def chain(name: str) -> list[Stage]:
    """A stage and the stages it is built upon, that one first."""
    stage = STAGES[name]
    return [stage, *(chain(stage.base) if stage.base in STAGES else [])]


def last(name: str, instruction: str) -> str:
    """What an instruction says in the finished image."""
    return next(found[-1] for stage in chain(name) if (found := stage.all(instruction)))


def copied(name: str) -> list[str]:
    """What a stage takes from the tree."""
    sources = [rest.split() for rest in STAGES[name].all("COPY") if not rest.startswith("--from")]
    return [source for words in sources for source in words[:-1]]


def interpolated(value: object, given: dict[str, str]) -> str:
    """A value of the compose file with `${NAME:-default}` and `${NAME:?message}` replaced."""

    def replace(match: re.Match[str]) -> str:
        if match["name"] in given:
            return given[match["name"]]
        assert match["kind"] == "-", f"{match['name']} has no default and is not in .env.example"
        return match["text"]

    return VARIABLE.sub(replace, str(value))


def example_values(*, commented: bool) -> dict[str, str]:
    """Variables of `.env.example`: those it sets, or those it only shows."""
    pattern = r"^# (\w+)=(.*)$" if commented else r"^(\w+)=(.*)$"
    return dict(re.findall(pattern, EXAMPLE, re.MULTILINE))


def settings_of(service: str) -> Settings:
    """The settings that a service starts with, from a plain copy of `.env.example`."""
    given = example_values(commented=False)
    values = {k: interpolated(v, given) for k, v in SERVICES[service]["environment"].items()}
    fields = {k.removeprefix("WARPSMITH_").lower(): v for k, v in values.items() if k in SETTINGS}
    with tempfile.TemporaryDirectory() as folder:
        for secret in SERVICES[service]["secrets"]:
            Path(folder, secret).write_text(PASSWORD if secret == "postgres_password" else "")
        fields = {k: v.replace("/run/secrets", folder) for k, v in fields.items()}
        return Settings(_env_file=None, **fields)  # type: ignore[arg-type]


def check_command(words: list[str]) -> None:
    """Arguments of `python -m`: a module of ours, and what it accepts."""
    module, *arguments = words
    if module == "worker.health":
        assert not arguments
        return
    assert module == "warpsmith"
    group: Any = get_command(app)
    assert arguments[0] in group.commands
    group.commands[arguments[0]].make_context(arguments[0], arguments[1:])


def container_commands() -> list[list[str]]:
    """Arguments of the containers of `docs/fleet/kubernetes.yaml`."""
    documents = list(yaml.safe_load_all((FLEET / "kubernetes.yaml").read_text()))
    pods = [d["spec"]["template"]["spec"] for d in documents if d["kind"] != "Service"]
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in pods)
    return [container["args"] for pod in pods for container in pod["containers"]]


def installed_commands() -> list[list[str]]:
    """Calls of the installed program in units and Slurm's script, as arguments of `python -m`."""
    texts = [path.read_text() for path in sorted(FLEET.iterdir()) if path.suffix in (".service", ".slurm")]
    found = re.findall(r'^(?:Exec\w+=|exec "?)\S*/bin/(warpsmith)"? (.+)$', "\n".join(texts), re.MULTILINE)
    return [[program, *shlex.split(words)] for program, words in found]


def test_examples_of_fleets_start_what_there_is() -> None:
    containers, installed = container_commands(), installed_commands()
    assert [words[1] for words in containers] == ["migrate", "serve", "worker", "worker"]
    assert sorted(words[1] for words in installed) == ["migrate", "serve", "worker", "worker"]
    for words in (*containers, *installed):
        check_command(words)
    subprocess.run(["bash", "-n", str(FLEET / "worker.slurm")], check=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_units_are_what_systemd_takes(tmp_path: Path) -> None:
    for unit in FLEET.glob("*.service"):
        text = unit.read_text()
        # Without the installation of the example systemd would miss its program.
        (tmp_path / unit.name).write_text(text.replace("/opt/warpsmith/bin/warpsmith", "/bin/true"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", *map(str, tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_services() -> None:
    ours = {"migrate", "api", "worker-light", "worker-cpu", "worker-gpu", "worker-compile"}
    assert set(SERVICES) == {"postgres", "redis"} | ours


@pytest.mark.parametrize("name", OURS)
def test_every_target_is_a_stage(name: str) -> None:
    build = SERVICES[name]["build"]
    assert (ROOT / build["context"] / "Dockerfile").is_file()
    assert build["target"] in TARGETS
    assert build["target"] in STAGES


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(SERVICES[name]["environment"]) - set(SETTINGS) <= {TRACES}


@pytest.mark.parametrize("name", OURS)
def test_every_service_runs_in_the_full_mode(name: str) -> None:
    found = settings_of(name)
    assert not found.embedded
    database, broker = make_url(found.sqlalchemy_url), make_url(str(found.broker_url))
    assert database.drivername == "postgresql+psycopg"
    assert {database.host, broker.host} <= set(SERVICES)
    server = SERVICES["postgres"]["environment"]
    assert database.username == server["POSTGRES_USER"]
    assert database.database == server["POSTGRES_DB"]
    assert database.password == PASSWORD
    file = SERVICES[name]["environment"]["WARPSMITH_DATABASE_PASSWORD_FILE"]
    assert server["POSTGRES_PASSWORD_FILE"] == file == "/run/secrets/postgres_password"


@pytest.mark.parametrize("name", SERVICES)
def test_every_secret_that_a_service_reads_is_given_to_it(name: str) -> None:
    read = [v for v in SERVICES[name].get("environment", {}).values() if str(v).startswith("/run/secrets/")]
    assert {Path(v).name for v in read} == set(SERVICES[name].get("secrets", []))
    assert set(SERVICES[name].get("secrets", [])) <= set(COMPOSE["secrets"])


def test_no_secret_is_in_the_environment() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert not re.search(r"\$\{\w*(PASSWORD|API_KEY|TOKEN)\}", text)
    assert "PASSWORD:" not in text
    assert "API_KEY:" not in text


def test_every_setting_is_passed_to_some_service_or_has_no_use_there() -> None:
    passed = {name for service in OURS for name in SERVICES[service]["environment"]}
    assert set(SETTINGS) - passed == set(NOT_PASSED)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_limits_and_logs_that_end(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"\d+[gm]", interpolated(service["mem_limit"], {}))
    assert 0 < service["pids_limit"] <= 4096
    assert service["logging"]["options"].keys() >= {"max-size", "max-file"}


def test_what_needs_to_write_nothing_cannot() -> None:
    assert {n for n, s in SERVICES.items() if s.get("read_only")} == {"api", "migrate", "redis"}


def test_redis_loses_no_message_silently() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"


def test_compiled_kernels_outlive_a_container() -> None:
    data_dir = next(s.split("=", 1)[1] for s in STAGES["slim"].all("ENV") if s.startswith("WARPSMITH_DATA"))
    for name in (n for n in SERVICES if n.startswith("worker-")):
        assert SERVICES[name]["volumes"] == [f"kernels:{data_dir}"]


def test_defaults_of_the_compose_file_are_those_of_the_program() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    named = [m for m in VARIABLE.finditer(text) if m["name"] in SETTINGS]
    assert len(named) >= 8
    for match in named:
        field = match["name"].removeprefix("WARPSMITH_").lower()
        chosen = Settings(_env_file=None, **{field: match["text"]})  # type: ignore[arg-type]
        assert getattr(chosen, field) == SETTINGS[match["name"]].default, match["name"]


def test_the_example_names_settings_and_nothing_else() -> None:
    shown = example_values(commented=False) | example_values(commented=True)
    assert {name for name in shown if name.startswith("WARPSMITH_")} <= set(SETTINGS)
    assert {name for name in shown if not name.startswith("WARPSMITH_")} == COMPOSES_OWN | {TRACES}
    fields = {k.removeprefix("WARPSMITH_").lower(): v for k, v in shown.items() if k in SETTINGS}
    fields = {k: v for k, v in fields.items() if not k.endswith("_file")}
    assert not Settings(_env_file=None, **fields).embedded  # type: ignore[arg-type]


def test_every_variable_that_compose_reads_is_in_the_example() -> None:
    named = {m["name"] for m in VARIABLE.finditer((ROOT / "docker-compose.yml").read_text())}
    assert named - set(example_values(commented=False) | example_values(commented=True)) == set()


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one(name: str) -> None:
    assert json.loads(last(SERVICES[name]["build"]["target"], "ENTRYPOINT")) == ["python", "-m"]
    check_command(SERVICES[name]["command"])


@pytest.mark.parametrize("target", TARGETS)
def test_every_image_starts_something(target: str) -> None:
    check_command(json.loads(last(target, "CMD")))


def test_a_command_that_is_none_is_found() -> None:
    with pytest.raises(AssertionError):
        check_command(["warpsmith", "surf"])
    with pytest.raises(Exception, match="--no-such-option"):
        check_command(["warpsmith", "worker", "--no-such-option"])


def test_the_migration_command_brings_a_database_forward(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    run = subprocess.run(
        [sys.executable, "-m", *SERVICES["migrate"]["command"]],
        cwd=ROOT,
        env={**os.environ, "WARPSMITH_DATABASE_URL": url},
        check=False,
    )
    assert run.returncode == 0
    assert migrate.current(url) == migrate.head()


def test_services_wait_for_what_they_need() -> None:
    for name, service in SERVICES.items():
        for other, rule in service.get("depends_on", {}).items():
            if rule["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{name} waits for {other}, which has no check"
            else:
                assert rule["condition"] == "service_completed_successfully"
                assert SERVICES[other]["restart"] == "no"
    for name in set(OURS) - {"migrate"}:
        assert set(SERVICES[name]["depends_on"]) == {"postgres", "redis", "migrate"}


def test_volumes_are_declared() -> None:
    mounts = [m for s in SERVICES.values() for m in s.get("volumes", [])]
    assert {m.split(":", 1)[0] for m in mounts} == set(COMPOSE["volumes"])


def test_the_api_is_published_on_loopback_alone() -> None:
    ports = {name: s["ports"] for name, s in SERVICES.items() if "ports" in s}
    assert set(ports) == {"api"}
    assert all(port.startswith("127.0.0.1:") for port in ports["api"])
    assert settings_of("api").port == int(ports["api"][0].rsplit(":", 1)[1])


def test_the_gpu_worker_is_optional_and_gets_every_gpu() -> None:
    profiles = {name: s["profiles"] for name, s in SERVICES.items() if "profiles" in s}
    assert profiles == {"worker-cpu": ["cpu"], "worker-gpu": ["gpu"], "worker-compile": ["compile"]}
    assert "deploy" not in SERVICES["worker-compile"], "it needs no GPU"
    (device,) = SERVICES["worker-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


@pytest.mark.parametrize("profile", ["cpu", "gpu", "compile"])
def test_with_every_profile_all_queues_are_served_and_one_tuner_runs_at_most(profile: str) -> None:
    started = [s for s in SERVICES.values() if profile in s.get("profiles", [profile])]
    workers = [s["command"][-1].split(",") for s in started if "worker" in s.get("command", ())]
    assert workers[0] == ["control", "agents", "webhooks"]
    assert workers[1:] == [["compile" if profile == "compile" else "gpu"]]


def test_without_a_profile_this_machines_cores_are_tuned() -> None:
    assert example_values(commented=False)["COMPOSE_PROFILES"] == "cpu"


@pytest.mark.parametrize("target", ["worker-cpu", "worker-gpu"])
def test_a_worker_image_says_how_it_is(target: str) -> None:
    check = json.loads(last(target, "HEALTHCHECK").split("CMD", 1)[1])
    assert check[:2] == ["python", "-m"]
    check_command(check[2:])


@pytest.mark.parametrize("target", TARGETS)
def test_no_image_runs_as_root(target: str) -> None:
    user = last(target, "USER")
    assert user not in ("root", "0")
    assert any(f" {user} " in f"{run} " for stage in chain(target) for run in stage.all("RUN"))


@pytest.mark.parametrize("target", TARGETS)
def test_packages_come_from_the_lock_of_the_image(target: str) -> None:
    (source,) = {m[1] for c in STAGES[target].all("COPY") if (m := re.match(r"--from=(\S+) ", c))}
    installs = [p for run in STAGES[source].all("RUN") for p in run.split("&&") if "pip install" in p]
    assert installs
    assert [p for p in installs if "--require-hashes" not in p] == []
    assert f"requirements/{target}.txt" in copied(source)
    assert any(f"requirements/{target}.txt" in run for run in STAGES[source].all("RUN"))


def test_the_api_image_has_no_compiler() -> None:
    text = " ".join(rest for stage in chain("api") for rest in stage.all("RUN"))
    assert "apt-get" not in text
    assert "slim" in (ROOT / "Dockerfile").read_text().split("PYTHON_IMAGE=", 1)[1].splitlines()[0]


def test_every_worker_image_has_a_linker() -> None:
    for target in ("worker-cpu", "worker-gpu"):
        words = shlex.split(" ".join(rest for stage in chain(target) for rest in stage.all("RUN")))
        assert {"gcc", "g++"} & set(words)


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    allowed = {ln[1:] for ln in (ROOT / ".dockerignore").read_text().splitlines() if ln.startswith("!")}
    sources = [source for name in STAGES for source in copied(name)]
    assert sources
    assert [s for s in sources if not (ROOT / s).exists()] == []
    assert {s.split("/", 1)[0] for s in sources} == allowed


@pytest.fixture
def image(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with what an image copies, and an environment in which nothing else of ours is seen."""
    for name in copied(request.param):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    site = next(p for p in sys.path if p.endswith("site-packages"))
    return tmp_path, {"PATH": os.environ["PATH"], "PYTHONPATH": site}


@pytest.mark.parametrize("image", ["worker-cpu", "worker-gpu"], indirect=True)
def test_a_worker_image_holds_all_that_a_worker_imports(image: tuple[Path, dict[str, str]]) -> None:
    folder, environment = image
    code = "import worker.main, worker.pool, worker.task_runner, warpsmith.sandbox; print(worker.__file__)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(folder / "worker" / "__init__.py")


@pytest.mark.parametrize("image", ["api"], indirect=True)
def test_the_api_image_serves_and_its_health_check_works(
    image: tuple[Path, dict[str, str]], postgres_url: str, redis_url: str
) -> None:
    folder, environment = image
    port = free_port()
    environment |= {
        "WARPSMITH_DATABASE_URL": postgres_url,
        "WARPSMITH_BROKER_URL": redis_url,
        "WARPSMITH_PORT": str(port),
    }
    python = [sys.executable, "-S", "-m"]
    subprocess.run([*python, *SERVICES["migrate"]["command"]], cwd=folder, env=environment, check=True)
    server = subprocess.Popen([*python, *SERVICES["api"]["command"]], cwd=folder, env=environment)
    try:
        deadline = Deadline(60)
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as reply:
                    assert reply.status == 200
                    break
            except URLError:
                assert not deadline.passed(), "the API does not answer"
                assert server.poll() is None, "the API ended"
                time.sleep(0.1)
        check = json.loads(last("api", "HEALTHCHECK").split("CMD", 1)[1])
        assert check[0] == "python"
        check[0] = sys.executable
        assert subprocess.run(check, env=environment, check=False).returncode == 0
        environment["WARPSMITH_PORT"] = str(free_port())
        failed = subprocess.run(check, env=environment, check=False, capture_output=True)
        assert failed.returncode != 0
    finally:
        server.terminate()
        server.wait(stretched(20))
