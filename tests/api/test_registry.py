"""The registry answers what serves each shape, and lessons go from one service to another."""

import json
import time
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from db.engine import utc_now
from db.repositories.memory.lessons import LessonRepository
from db.tables import RegistryRow
from db.views.finished_lessons import learn
from testbed.api_service import Service
from testbed.deadlines import stretched
from testbed.stages import BEST, LARGE, SMALL, ended
from tests.api.clients import KINDS, ask
from tests.api.test_bad_input import problem_of
from tests.api.test_read import submit
from warpsmith.cli.app import app
from warpsmith.errors import InvalidInput
from warpsmith.extensions.clients.client import Client
from warpsmith.extensions.clients.commands import service_commands
from warpsmith.http_models import JobLesson, JobLessonPage, RegistryList
from warpsmith.testing.jobs import DEVICE, SCALE_SOURCE, scale_job
from warpsmith.tuning.lessons.kernel_fingerprint import fingerprint

ROWS = 200
"""Shapes of a model."""


def learned(service: Service, http: httpx2.Client | None = None) -> str:
    """Id of a job that ended and taught something."""
    job_id = submit(http or service.http)
    with service.database.write() as session:
        ended(session, job_id)
        assert learn(session, job_id)
    return job_id


def registry(http: httpx2.Client, **params: object) -> RegistryList:
    reply = http.get("/v1/registry", params=params)  # type: ignore[arg-type]
    assert reply.status_code == 200, reply.text
    return RegistryList.model_validate_json(reply.content)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_asks_for_all_shapes_at_once(kind: str, embedded: Service) -> None:
    job_id = learned(embedded)
    kernel = scale_job().kernel
    url = str(embedded.http.base_url)
    found = ask(kind, url, embedded.key, "registry", [kernel], DEVICE.device_class)
    assert isinstance(found, RegistryList)
    rows = {row.workload: row for row in found.items}
    assert set(rows) == {LARGE, SMALL}
    assert rows[LARGE].configuration == BEST
    assert (rows[LARGE].speedup, rows[LARGE].attempt, rows[LARGE].stale) == (1.9, 0, False)
    assert (rows[SMALL].speedup, rows[SMALL].attempt, rows[SMALL].configuration) == (1.0, None, {})
    assert {(r.job, r.kernel, r.driver) for r in found.items} == {
        (job_id, fingerprint(kernel), DEVICE.driver)
    }
    only = ask(kind, url, embedded.key, "registry", [kernel], workloads=[SMALL])
    assert [row.workload for row in only.items] == [SMALL]


def test_a_later_verification_takes_the_place_of_an_earlier_one(embedded: Service) -> None:
    jobs = [learned(embedded) for _ in range(2)]
    assert {row.job for row in registry(embedded.http).items} == {jobs[1]}


def test_what_another_driver_verified_is_stale(embedded: Service) -> None:
    learned(embedded)
    newer = DEVICE.model_copy(update={"driver": "999.0"}).device_class
    assert {row.stale for row in registry(embedded.http, device_class=newer).items} == {True}
    assert not registry(embedded.http, device_class="cuda-nvidia-h100-580.1").items
    assert not registry(embedded.http, kernel="0" * 64).items


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kernel=xyz", "query.kernel.0"),
        ("device_class=H%25", "query.device_class"),
        ("workload=%00", "query.workload.0"),
        ("kernels=" + "0" * 64, "query.kernels"),
    ],
)
def test_a_bad_question_is_named(embedded: Service, query: str, field: str) -> None:
    (error,) = problem_of(embedded.http.get(f"/v1/registry?{query}"), 422).errors
    assert error.field == field


def test_all_shapes_of_a_model_are_answered_soon(service: Service) -> None:
    learned(service)
    with service.database.write() as session:
        (row,) = session.query(RegistryRow).filter_by(workload=LARGE).all()
        same = {c.name: getattr(row, c.name) for c in RegistryRow.__table__.columns}
        rows = [same | {"workload": f"n={n}", "verified_at": utc_now()} for n in range(ROWS)]
        session.execute(insert(RegistryRow), rows)
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        found = registry(service.http, kernel=row.kernel, device_class=row.device_class)
        taken.append(time.perf_counter() - began)
    assert len(found.items) == ROWS + 2 and not found.truncated
    # On a quiet machine it is 0.03 s; ten times that says that it grew with something else.
    assert min(taken) < stretched(0.3), taken


def test_a_lesson_goes_to_another_service_and_is_taken_over_once(embedded: Service) -> None:
    job_id = learned(embedded)
    (taught,) = JobLessonPage.model_validate_json(embedded.http.get("/v1/lessons").content).items
    assert taught.job == job_id
    again = embedded.http.post("/v1/lessons", content=taught.model_dump_json(), headers=JSON)
    assert (again.status_code, again.json()) == (200, {"job": job_id, "new": False})
    foreign = JobLesson(job="elsewhere", lesson=taught.lesson)
    replies = [
        embedded.http.post("/v1/lessons", content=foreign.model_dump_json(), headers=JSON) for _ in range(2)
    ]
    assert [(r.status_code, r.json()["new"]) for r in replies] == [(201, True), (200, False)]
    kept = replies[0].json()["job"]
    assert {row.job for row in registry(embedded.http).items} == {job_id}, "nothing of it counts as verified"
    with embedded.database.read() as session:
        found = LessonRepository(session).alike(scale_job().kernel, DEVICE.device_class, None, 9, but=job_id)
        assert [(f.job_id, f.lesson) for f in found] == [(kept, taught.lesson)]


def test_lessons_come_page_by_page(embedded: Service) -> None:
    jobs = [learned(embedded) for _ in range(3)]
    first = JobLessonPage.model_validate_json(embedded.http.get("/v1/lessons?limit=2").content)
    after = f"/v1/lessons?limit=2&after={first.next}"
    rest = JobLessonPage.model_validate_json(embedded.http.get(after).content)
    assert [i.job for i in (*first.items, *rest.items)] == jobs
    assert rest.next is None
    one = JobLessonPage.model_validate_json(embedded.http.get(f"/v1/lessons?job={jobs[1]}").content)
    assert [i.job for i in one.items] == [jobs[1]]


def test_nobody_writes_over_the_lesson_of_another_tenant(service: Service) -> None:
    with (
        service.client(service.new_key(tenant="one")) as one,
        service.client(service.new_key(tenant="two")) as two,
    ):
        job_id = learned(service, one)
        (taught,) = JobLessonPage.model_validate_json(one.get("/v1/lessons").content).items
        assert not two.get("/v1/lessons").json()["items"]
        assert not registry(two).items
        false = taught.model_copy(update={"lesson": taught.lesson.model_copy(update={"speedup": 99.0})})
        reply = two.post("/v1/lessons", content=false.model_dump_json(), headers=JSON)
        assert reply.status_code == 201 and reply.json()["job"] != job_id
        (after,) = JobLessonPage.model_validate_json(one.get("/v1/lessons").content).items
        assert after == taught


def test_a_lesson_that_is_none_is_refused_with_its_field(embedded: Service) -> None:
    learned(embedded)
    (taught,) = embedded.http.get("/v1/lessons").json()["items"]
    taught["lesson"]["attempts"][0]["template"]["kernel"]["launch"] = {"grid": ["1 +"], "block": ["1"]}
    problem = problem_of(embedded.http.post("/v1/lessons", json=taught), 422)
    assert problem.errors[0].field.startswith("lesson.attempts.0.template.kernel.launch.grid")
    assert SCALE_SOURCE not in json.dumps(problem.model_dump())


def test_a_lesson_served_by_nothing_is_refused(embedded: Service) -> None:
    learned(embedded)
    (taught,) = embedded.http.get("/v1/lessons").json()["items"]
    taught["lesson"]["served"][0]["attempt"] = 99
    problem = problem_of(embedded.http.post("/v1/lessons", json=taught), 422)
    (error,) = problem.errors
    assert (error.field, error.message) == ("lesson.served.0.attempt", "there are 1 attempts")


JSON = {"Content-Type": "application/json"}


def test_the_command_line_carries_lessons_in_a_file(
    embedded: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(embedded)
    # The settings, which hold the key, are read once a process.
    monkeypatch.setattr(service_commands, "connect", lambda address: Client(address, embedded.key))
    file, url = tmp_path / "lessons.jsonl", str(embedded.http.base_url)
    given = {"WARPSMITH_URL": url}
    made = CliRunner().invoke(app, ["lessons", "export", str(file)], env=given)
    assert made.exit_code == 0 and made.output.endswith(": 1 lessons\n"), made.output
    (line,) = file.read_text().splitlines()
    file.write_text(line.replace(json.loads(line)["job"], "elsewhere") + "\n")
    for new in (1, 0):
        taken = CliRunner().invoke(app, ["lessons", "import", str(file)], env=given)
        assert taken.output == f"{url}: {new} new lessons of 1\n"
    file.write_text(line + "\n{}\n")
    with pytest.raises(InvalidInput, match=r"jsonl:2: job: Field required; nothing was imported"):
        CliRunner().invoke(app, ["lessons", "import", str(file)], env=given, catch_exceptions=False)
