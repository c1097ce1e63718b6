"""The fleet's page: what each may see of others, and who may drain."""

from db.api_keys import KeyScope
from db.identifiers import new_id
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.workers import WorkerRepository
from testbed.api_service import Service
from testbed.rows import add_task
from warpsmith.testing.jobs import DEVICE, scale_job


def test_who_holds_what_without_telling_other_tenants(embedded: Service) -> None:
    with embedded.database.write() as session:
        ours = JobRepository(session).create(scale_job(name="ours-here"))[0].id
        theirs = JobRepository(session).create(scale_job(name="theirs-there"), tenant="others")[0].id
        worker = new_id()
        WorkerRepository(session).register(worker, "host-of-the-fleet", 1, "1.0", ("gpu.x",), (DEVICE,), {})
        for job_id in (ours, theirs):
            task = add_task(session, job_id)
            assert TaskRepository(session).claim(task.id, worker, 60) is not None
    page = embedded.http.get("/fleet").text
    assert "host-of-the-fleet" in page and DEVICE.device_class in page
    assert f'href="/jobs/{ours}"' in page and "ours-here" in page
    assert "theirs-there" not in page and theirs not in page
    assert "of another tenant" in page


def test_only_an_operator_drains(embedded: Service) -> None:
    with embedded.database.write() as session:
        worker = new_id()
        WorkerRepository(session).register(worker, "host-to-drain", 1, "1.0", ("gpu.x",), (DEVICE,), {})
    path = f"/fleet/{worker}/drain"
    with embedded.client(embedded.new_key(scopes=(KeyScope.READ, KeyScope.SUBMIT))) as user:
        assert path not in user.get("/fleet").text
        assert user.post(path).status_code == 403
    assert f'action="{path}"' in embedded.http.get("/fleet").text
    assert embedded.http.post(path).status_code == 303
    with embedded.database.read() as session:
        assert WorkerRepository(session).is_stopping(worker)
    assert embedded.http.post("/fleet/nobody/drain").status_code == 404
