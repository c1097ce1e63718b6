"""Whether the service says truly how it is."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from db import migrate
from db.admin.program_version import VERSION
from db.engine import Database, utc_now
from db.repositories.workers import ALIVE_S, SHOWN_S, WorkerRepository
from db.tables import WorkerRow
from testbed.api_service import Service, service_settings, serving
from testbed.servers import free_port
from tests.api.jobs import body
from tests.api.test_bad_input import problem_of
from warpsmith import __version__
from warpsmith.http_models import WorkerList
from warpsmith.testing.jobs import DEVICE


def add_worker(database: Database, name: str = "w1", age_s: float = 0.0, version: str = VERSION) -> None:
    """A worker that was last heard of so long ago."""
    with database.write() as session:
        WorkerRepository(session).register(
            name, "host", 1, version, ["gpu"], [DEVICE, DEVICE], {"cuda": "no driver <b>here</b>"}
        )
        row = session.get_one(WorkerRow, name)
        row.last_seen = utc_now() - timedelta(seconds=age_s)


@contextmanager
def dead_postgres(folder: Path) -> Iterator[Service]:
    """A service whose database has gone away."""
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    with serving(service_settings(folder, url)) as running:
        yield running


def test_healthz_needs_nothing(tmp_path: Path, embedded: Service) -> None:
    assert embedded.http.get("/healthz").json() == {"status": "ok", "version": __version__}
    with dead_postgres(tmp_path / "dead") as service:
        assert service.http.get("/healthz").status_code == 200


def test_readyz_wants_a_living_worker(embedded: Service) -> None:
    found = problem_of(embedded.http.get("/readyz"), 503)
    assert found.detail == "no worker is alive; start one with `warpsmith worker`"
    add_worker(embedded.database, "old", age_s=ALIVE_S + 5)
    problem_of(embedded.http.get("/readyz"), 503)
    add_worker(embedded.database, "other", version="0.0.9+7")
    assert "all living workers of 0.0.9+7" in problem_of(embedded.http.get("/readyz"), 503).detail
    add_worker(embedded.database)
    reply = embedded.http.get("/readyz")
    assert (reply.status_code, reply.json()["status"]) == (200, "ready")


def test_readyz_wants_the_schema_of_this_version(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path, f"sqlite:///{tmp_path / 'a.db'}")) as service:
        found = problem_of(service.http.get("/readyz"), 503)
        assert "run `warpsmith migrate`" in found.detail
        migrate.upgrade(service.settings.sqlalchemy_url)
        add_worker(service.database)
        assert service.http.get("/readyz").status_code == 200


def test_a_database_that_is_away_is_a_503_that_says_so(tmp_path: Path) -> None:
    with dead_postgres(tmp_path) as service:
        replies = [
            service.http.get("/readyz"),
            service.http.get("/v1/workers"),
            service.http.get("/v1/jobs"),
            service.http.get("/v1/jobs/x"),
            service.http.post("/v1/jobs", json=body()),
            service.http.post("/v1/jobs/x/cancel"),
        ]
    for reply in replies:
        found = problem_of(reply, 503)
        assert found.detail == "the database does not answer; nothing was stored, try again"
        assert reply.headers["retry-after"] == "5"


def test_a_database_that_goes_away_and_comes_back(postgres_url: str, tmp_path: Path) -> None:
    address = make_url(postgres_url)
    name = str(address.database)
    admin = create_engine(address.set(database="postgres"), isolation_level="AUTOCOMMIT")
    try:
        with serving(service_settings(tmp_path, postgres_url), migrated=True) as service:
            add_worker(service.database)
            assert service.http.get("/readyz").status_code == 200
            with admin.connect() as connection:
                query = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
                connection.execute(query, {"name": name})
                connection.execute(text(f"ALTER DATABASE {name} RENAME TO {name}_away"))
            problem_of(service.http.get("/readyz"), 503)
            problem_of(service.http.post("/v1/jobs", json=body()), 503)
            with admin.connect() as connection:
                connection.execute(text(f"ALTER DATABASE {name}_away RENAME TO {name}"))
            assert service.http.get("/readyz").status_code == 200
            assert service.http.get("/v1/jobs").json()["items"] == []
    finally:
        admin.dispose()


def test_a_damaged_database_file_is_a_503(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    with serving(service_settings(tmp_path, f"sqlite:///{path}")) as service:
        problem_of(service.http.get("/readyz"), 503)
        problem_of(service.http.post("/v1/jobs", json=body()), 503)


def test_workers_are_listed_with_what_they_offer_and_lack(service: Service) -> None:
    add_worker(service.database, "b-gone", age_s=ALIVE_S + 60)
    add_worker(service.database, "a-alive")
    found = WorkerList.model_validate_json(service.http.get("/v1/workers").content)
    assert [(w.id, w.alive) for w in found.items] == [("b-gone", False), ("a-alive", True)]
    worker = found.items[1]
    assert worker.devices == (DEVICE.device_class,)
    assert worker.unavailable == {"cuda": "no driver <b>here</b>"}
    assert worker.version == VERSION


def test_a_worker_that_stopped_in_order_or_long_ago_is_not_listed(embedded: Service) -> None:
    add_worker(embedded.database, "stopped")
    add_worker(embedded.database, "ancient", age_s=SHOWN_S + 60)
    with embedded.database.write() as session:
        WorkerRepository(session).stop("stopped")
    assert embedded.http.get("/v1/workers").json() == {"items": []}


def test_the_service_stops_when_asked_and_lets_the_port_go(tmp_path: Path) -> None:
    with serving(service_settings(tmp_path / "data")) as service:
        address = (service.http.base_url.host, service.http.base_url.port)
        assert service.http.get("/healthz").status_code == 200
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(address)
