"""The command line: help, exit codes, and messages that name what is wrong, against a real service."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from db.repositories.jobs import JobRepository
from testbed.api_service import Service, service_settings, serving
from testbed.deadlines import HANGS_S
from testbed.servers import free_port
from testbed.stages import HOSTILE, ended
from warpsmith.cli import main
from warpsmith.domain.jobs.job import NumpyReference
from warpsmith.extensions.clients.client import Client
from warpsmith.http_models import JobResult, JobStatus, WorkerList
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job

COMMANDS = [
    "serve",
    "worker",
    "submit",
    "status",
    "watch",
    "result",
    "cancel",
    "recheck",
    "workers",
    "tune",
    "demo",
    "doctor",
    "init",
    "validate",
    "jobs",
    "definition",
    "keys",
]
FIELDS = scale_job().model_dump(mode="json", exclude_unset=True)


@dataclass(frozen=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


class Runner:
    """Runs the command line in this process, as the entry point does."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(a) for a in arguments])
        captured = self._capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return Ran(caught.value.code, captured.out, captured.err)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service without a worker."""
    with serving(service_settings(tmp_path_factory.mktemp("service")), open_access=True) as running:
        yield running


@pytest.fixture
def url(service: Service) -> str:
    return str(service.http.base_url)


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(FIELDS))
    return path


@pytest.fixture
def nobody() -> str:
    """A URL where nothing answers."""
    return f"http://127.0.0.1:{free_port()}"


def word_of(message: str) -> str:
    """The last word of the path that a message begins with."""
    return message.split(":", 1)[0].rsplit(".", 1)[-1]


def submitted(run: Runner, job_file: Path, url: str) -> str:
    """Id of a job that was submitted by the command line."""
    ran = run("submit", job_file, "--url", url)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Runner, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    assert f"{command} [OPTIONS]" in ran.out


def test_the_help_lists_every_command(run: Runner) -> None:
    ran = run("--help")
    assert ran.code == 0
    assert all(f" {command} " in ran.out for command in COMMANDS)
    bare = run()
    assert (bare.code, bare.err) == (2, "")
    assert bare.out.split() == ran.out.split()


def test_it_runs_as_a_module_with_an_exit_code(nobody: str) -> None:
    command = [sys.executable, "-m", "warpsmith", "status", "x", "--url", nobody]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"error: {nobody} does not answer: ")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["status"], "Missing argument 'job_id'"),
        (["status", "a", "b"], "unexpected extra argument"),
        (["status", "a", "--wrong"], "No such option: --wrong"),
        (["serve", "--port", "many"], "'--port'"),
        (["serve", "--port", "70000"], "65535"),
        (["validate", "missing.yaml"], "'missing.yaml' does not exist"),
        (["validate", "."], "directory"),
    ],
)
def test_wrong_usage_is_told(run: Runner, arguments: list[str], words: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert words in ran.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nmae": 1}, "nmae: no such field; did you mean 'name'?"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ({"kernel": FIELDS["kernel"] | {"entry": ""}}, "kernel.entry: "),
        ({"constraints": [{"expression": "BLOK < n"}]}, "constraints.0.expression: "),
    ],
)
@pytest.mark.parametrize("command", ["validate", "submit", "tune"])
def test_a_bad_job_file_names_the_field(
    run: Runner, tmp_path: Path, nobody: str, command: str, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "bad.json"
    text = json.dumps(FIELDS | change, indent=1)
    path.write_text(text)
    line = next(n for n, t in enumerate(text.splitlines(), 1) if f'"{word_of(message)}":' in t)
    ran = run(command, path, *(["--url", nobody] if command == "submit" else []))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {path}:{line}: {message}")


def test_a_file_that_is_no_job_is_named_with_its_line(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\nkernel: [\n")
    ran = run("validate", path)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {path}:3: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "x"],
        ["status", "x", "--json"],
        ["watch", "x"],
        ["result", "x"],
        ["cancel", "x"],
        ["workers"],
        ["submit"],
    ],
)
def test_a_service_that_is_away_is_told(
    run: Runner, nobody: str, job_file: Path, arguments: list[str]
) -> None:
    files = [str(job_file)] if arguments == ["submit"] else []
    ran = run(*arguments, *files, "--url", nobody)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: {nobody} does not answer: ")


@pytest.mark.parametrize("bad", ["nonsense", "ftp://x", "http://[", "http://127.0.0.1:99999", "http://"])
def test_a_url_that_is_none_is_told(run: Runner, bad: str) -> None:
    ran = run("workers", "--url", bad)
    assert ran.code == 2
    assert ran.err.startswith("error: url: ")
    assert len(ran.err.splitlines()) == 1


def test_another_service_at_the_url_is_told(run: Runner) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = 404 if "missing" in self.path else 502 if "broken" in self.path else 200
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            found = {job: run("status", job, "--url", url) for job in ("x", "missing", "broken")}
        finally:
            server.shutdown()
            thread.join()
    assert found["x"] == Ran(3, "", f"error: {url} does not answer as Warpsmith does: HTTP 200\n")
    assert (found["missing"].code, found["broken"].code) == (2, 3)
    assert "HTTP 502" in found["broken"].err


def test_submit_status_cancel_result(run: Runner, url: str, job_file: Path) -> None:
    job = submitted(run, job_file, url)
    ran = run("status", job, "--url", url)
    assert ran.code == 0
    assert ran.out.startswith(f"{job} scale: queued, round 0/1, 0/12 trials (0 rejected)")
    status = JobStatus.model_validate_json(run("status", job, "--json", "--url", url).out)
    assert (status.id, status.trials_budget) == (job, 12)
    early = run("result", job, "--url", url)
    assert (early.code, early.out) == (2, "")
    assert f"job {job} has not ended" in early.err
    assert run("cancel", job, "--url", url) == Ran(0, "cancelled\n", "")
    assert run("cancel", job, "--url", url) == Ran(0, "cancelled\n", "")
    watched = run("watch", job, "--url", url)
    assert watched.code == 1
    assert "cancelled on request" in watched.err
    assert run("result", job, "--url", url).code == 0


def test_the_url_can_come_from_the_environment(
    run: Runner, url: str, monkeypatch: pytest.MonkeyPatch, job_file: Path
) -> None:
    monkeypatch.setenv("WARPSMITH_URL", url)
    job = run("submit", job_file, "--key", "cli-key").out
    assert run("submit", job_file, "--key", "cli-key").out == job
    ran = run("workers")
    assert (ran.code, ran.out) == (0, "")
    assert WorkerList.model_validate_json(run("workers", "--json").out).items == ()


def test_a_job_made_in_python_is_sent_whole(service: Service, url: str) -> None:
    reference = NumpyReference(source="def reference(inputs, dims):\n    return {'y': inputs['x']}\n")
    job = scale_job().model_copy(update={"reference": reference})
    with Client(url) as client:
        job_id = client.submit(job).id
    with service.database.read() as session:
        assert JobRepository(session).get(job_id, with_spec=True).spec == job


@pytest.mark.parametrize("command", ["submit", "tune"])
def test_a_job_that_does_not_fit_its_source_is_told_before_anything_starts(
    run: Runner, tmp_path: Path, nobody: str, command: str
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(FIELDS | {"kernel": FIELDS["kernel"] | {"entry": "skale"}}, indent=1))
    line = next(n for n, t in enumerate(path.read_text().splitlines(), 1) if "skale" in t)
    ran = run(command, path, *(["--url", nobody] if command == "submit" else []))
    assert ran == Ran(
        2,
        "",
        f"error: {path}:{line}: kernel.entry: no kernel 'skale' in the source; found scale; "
        "did you mean 'scale'?\n",
    )


def test_a_job_is_sent_as_it_is_where_its_author_says_so(run: Runner, url: str, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(FIELDS | {"kernel": FIELDS["kernel"] | {"entry": "skale"}}))
    ran = run("submit", path, "--no-check", "--url", url)
    assert (ran.code, ran.err) == (0, "")


def test_what_the_service_refuses_is_told_with_its_field(run: Runner, url: str, tmp_path: Path) -> None:
    path = tmp_path / "replayed.json"
    path.write_text(json.dumps(FIELDS | {"kernel": FIELDS["kernel"] | {"backend": "replay"}}, indent=1))
    ran = run("submit", path, "--url", url)
    said = "replay serves recorded timings for tests, and the operator has not enabled it"
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {path}:4: kernel.backend: {said}")


@pytest.mark.parametrize("job", ["nope", "..", "../../healthz", "a/b", "?limit=1", "#x", "%2e%2e", " ", "é"])
def test_an_id_of_no_job_is_told(run: Runner, url: str, job: str) -> None:
    for command in ("status", "result", "cancel"):
        ran = run(command, job, "--url", url)
        assert (ran.code, ran.out) in ((2, ""), (3, "")), command
        assert ran.err.startswith("error: ")
        assert len(ran.err.splitlines()) == 1


def test_the_report_of_a_job_that_is_done(
    run: Runner, service: Service, url: str, job_file: Path, tmp_path: Path
) -> None:
    job = submitted(run, job_file, url)
    with service.database.write() as session:
        ended(session, job)
    out = tmp_path / "deep" / "folder"
    ran = run("result", job, "--url", url, "--out", out)
    assert ran.code == 0
    assert "1.41x over all workloads" in ran.out
    assert "2.00x (1.90 to 2.10)" in ran.out
    assert "BLOCK=256 PER=4" in ran.out
    assert "baseline kept" in ran.out
    written = [Path(line.removeprefix("wrote ")) for line in ran.err.splitlines()]
    bundle = {"result.json", "report.html", "trials.jsonl", "tuned-n_4096.cl", "dispatch.py"}
    assert {p.name for p in written} == bundle
    assert all(p.parent == out for p in written)
    result = JobResult.model_validate_json((out / "result.json").read_text())
    assert result == JobResult.model_validate_json(run("result", job, "--url", url, "--json").out)
    with Client(url) as client:
        assert result == client.result(job)
    assert HOSTILE not in (out / "report.html").read_text()
    assert run("watch", job, "--url", url).code == 0


def test_init_writes_a_job_file_with_the_arguments_it_found(run: Runner, tmp_path: Path) -> None:
    source = tmp_path / "scale.cl"
    source.write_text(SCALE_SOURCE)
    ran = run("init", source)
    assert ran.code == 0
    target = tmp_path / "scale.yaml"
    assert ran.out.startswith(f"wrote {target}; fill in what is marked TODO")
    fields = yaml.safe_load(target.read_text())
    assert fields["kernel"]["entry"] == "scale"
    assert [a["name"] for a in fields["kernel"]["arguments"]] == ["x", "y", "n"]
    assert fields["kernel"]["source_file"] == "scale.cl"


def test_init_never_overwrites(run: Runner, tmp_path: Path) -> None:
    source, target = tmp_path / "scale.cl", tmp_path / "mine.yaml"
    source.write_text(SCALE_SOURCE)
    target.write_text("precious")
    ran = run("init", source, "-o", target)
    assert ran.code == 2
    assert ran.err == f"error: --out: {target} exists; name another file\n"
    assert target.read_text() == "precious"


def test_init_says_what_it_cannot_read(run: Runner, tmp_path: Path) -> None:
    for name, text, words in [
        ("a.txt", "x", "neither its ending (.cu, .cuh, .cl, .clh, .opencl, .ocl, .hip, .py) nor its text"),
        ("b.cl", "int f(int x) { return x; }", "kernel"),
    ]:
        path = tmp_path / name
        path.write_text(text)
        ran = run("init", path)
        assert ran.code == 2
        assert words in ran.err
    path = tmp_path / "scale.cl"
    path.write_text(SCALE_SOURCE)
    ran = run("init", path, "--entry", "other")
    assert ran.code == 2
    assert "other" in ran.err
    assert not (tmp_path / "scale.yaml").exists()


def test_a_fleet_without_a_worker_says_so(run: Runner, url: str) -> None:
    ran = run("workers", "--url", url)
    assert (ran.code, ran.err) == (0, "no worker is alive; start one with `warpsmith worker`\n")
