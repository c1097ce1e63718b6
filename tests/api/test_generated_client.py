"""A client that a generator makes of the API's description can submit a job, poll it and fetch its result."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from testbed.api_service import Service
from testbed.stages import ended
from tests.api.jobs import body
from warpsmith.testing.jobs import scale_job

NAME = "generated_warpsmith_client"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package that openapi-python-client writes; no warning means that no operation was dropped."""
    folder = tmp_path_factory.mktemp("client")
    description = Path(__file__).parents[1] / "golden" / "openapi.json"
    made = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", str(description), "--output-path", str(folder / NAME), "--fail-on-warning"),
        ],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(NAME)
    finally:
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n.split(".")[0] == NAME]:
            del sys.modules[name]


def operation(client: ModuleType, name: str) -> Any:
    """The module of an operation of the tag `jobs`."""
    return importlib.import_module(f"{client.__name__}.api.jobs.{name}")


def test_a_generated_client_submits_polls_and_fetches(service: Service, client: ModuleType) -> None:
    models = importlib.import_module(f"{client.__name__}.models")
    http = client.AuthenticatedClient(base_url=str(service.http.base_url), token=service.key)
    with http:
        job = models.Job.from_dict(body(labels={"made-by": "a generated client"}))
        submitted = operation(client, "submit").sync(client=http, body=job)
        assert submitted.state == "queued"
        assert submitted.labels.to_dict() == {"made-by": "a generated client"}
        polled = operation(client, "status").sync(submitted.id, client=http)
        assert (polled.id, polled.name) == (submitted.id, body()["name"])
        listed = operation(client, "list_jobs").sync(client=http, label=["made-by=a generated client"])
        assert submitted.id in [item.id for item in listed.items]
        read = operation(client, "definition").sync(submitted.id, client=http)
        assert read.to_dict()["kernel"]["entry"] == body()["kernel"]["entry"]
        cancelled = operation(client, "cancel").sync(submitted.id, client=http)
        assert cancelled.state == "cancelled"


def test_a_generated_client_reads_a_whole_result(service: Service, client: ModuleType) -> None:
    sent = scale_job().model_dump(mode="json", exclude_unset=True)
    job_id = service.http.post("/v1/jobs", json=sent).json()["id"]
    with service.database.write() as session:
        ended(session, job_id)
    with client.AuthenticatedClient(base_url=str(service.http.base_url), token=service.key) as http:
        result = operation(client, "result").sync(job_id, client=http)
    served = service.http.get(f"/v1/jobs/{job_id}/result").json()
    assert result.state == served["state"] == "done"
    assert [c.to_dict() for c in result.comparisons] == json.loads(json.dumps(served["comparisons"]))
    assert [d.source for d in result.dispatch] == [d["source"] for d in served["dispatch"]]
