"""A user's own agent works with the service over MCP: the library's client against a running service."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from db.api_keys import KeyScope
from db.engine import utc_now
from db.repositories.agent_requests import AgentRequestRepository
from db.repositories.tasks import TaskRepository
from db.views.finished_lessons import learn
from testbed.api_service import Service, bearer
from testbed.plain_http import NO_TLS
from testbed.stages import BEST, LARGE, SMALL, ended
from warpsmith.domain.state import TaskKind
from warpsmith.testing.jobs import SCALE_SOURCE, scale_job
from warpsmith.tuning.tasks import StepPayload

Found = TypeVar("Found")
JOB = scale_job().model_dump_json(exclude_unset=True)
TOOLS = {
    "answer",
    "cancel",
    "devices",
    "draft_job",
    "open_questions",
    "registry",
    "result",
    "status",
    "submit",
    "trials",
    "validate",
    "winner",
}


def using(service: Service, work: Callable[[Client], Awaitable[Found]], key: str | None = None) -> Found:
    """What some work with the tools gives, over HTTP with a key."""

    async def run() -> Found:
        headers = bearer(key or service.key)
        url = str(service.http.base_url).rstrip("/") + "/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, verify=NO_TLS) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await work(client)

    return asyncio.run(run())


async def call(client: Client, name: str, **arguments: Any) -> Any:
    """What a tool says; its error as text."""
    result = await client.call_tool(name, arguments)
    if result.is_error:
        return result.content[0].text  # type: ignore[union-attr]
    said = result.structured_content
    return said["result"] if said is not None and set(said) == {"result"} else said


def say(service: Service, name: str, key: str | None = None, **arguments: Any) -> Any:
    return using(service, lambda client: call(client, name, **arguments), key)


def submitted(service: Service, **changes: Any) -> str:
    text = scale_job(**changes).model_dump_json(exclude_unset=True)
    status = say(service, "submit", job=text)
    assert status["state"] == "queued", status
    return str(status["id"])


def test_every_tool_says_what_it_does(embedded: Service) -> None:
    async def work(client: Client) -> dict[str, str | None]:
        return {tool.name: tool.description for tool in (await client.list_tools()).tools}

    found = using(embedded, work)
    assert set(found) == TOOLS
    assert all(text and len(text) > 20 for text in found.values())


def test_from_a_job_to_its_winner(embedded: Service) -> None:
    job_id = submitted(embedded)
    assert f"job {job_id} has not ended" in say(embedded, "result", job=job_id)
    with embedded.database.write() as session:
        ended(session, job_id)
        learn(session, job_id)
    status = say(embedded, "status", job=job_id, wait_s=60)
    assert status["state"] == "done"
    assert [w["speedup"] for w in status["workloads"]] == [2.0, 1.0]
    result = say(embedded, "result", job=job_id)
    assert result["speedup"] == pytest.approx(2**0.5)
    assert [e["workload"] for e in result["dispatch"]] == [LARGE, SMALL]
    assert "source" not in json.dumps(result)
    winner = say(embedded, "winner", job=job_id, workload=LARGE)
    assert winner["configuration"] == BEST and "#define BLOCK 256" in winner["source"]
    assert "it has n=4096, n=1001" in say(embedded, "winner", job=job_id, workload="n=1")
    assert [t["state"] for t in say(embedded, "trials", job=job_id)] == 4 * ["finished"], "no proposed one"
    assert len(say(embedded, "trials", job=job_id, last=2)) == 2
    assert {row["workload"] for row in say(embedded, "registry")["items"]} == {LARGE, SMALL}


def test_status_waits_for_the_end_or_a_question(embedded: Service) -> None:
    job_id = submitted(embedded)

    async def ask() -> None:
        await asyncio.sleep(0.5)
        with embedded.database.write() as session:
            payload = StepPayload(role="templater", round=1)
            task = TaskRepository(session).enqueue(job_id, TaskKind.AGENT_STEP, "agents", payload)
            until = utc_now() + timedelta(hours=1)
            AgentRequestRepository(session).add(task, "templater", 1, "write", {"kernel": "x"}, {}, until)

    async def work(client: Client) -> tuple[Any, Any, Any]:
        waiting = asyncio.create_task(call(client, "status", job=job_id, wait_s=100))
        await ask()
        status = await asyncio.wait_for(waiting, 60)
        (question,) = await call(client, "open_questions", job=job_id)
        refused = await call(client, "answer", question=question["id"], answer={"rules": ["no_such_rule"]})
        return status, question, refused

    status, question, refused = using(embedded, work)
    assert status["state"] == "queued"
    assert (question["role"], question["question"]) == ("templater", {"kernel": "x"})
    assert "rules" in refused


def test_a_draft_becomes_a_job(embedded: Service) -> None:
    async def work(client: Client) -> tuple[Any, ...]:
        draft = await call(client, "draft_job", source=SCALE_SOURCE, backend="opencl", entry="scale")
        wrong = await call(client, "validate", job="kernel: 3", source=SCALE_SOURCE)
        absent = await call(client, "draft_job", source=SCALE_SOURCE, backend="opencl", entry="none")
        right = await call(client, "validate", job=JOB)
        return draft, wrong, absent, right

    draft, wrong, absent, right = using(embedded, work)
    assert "source_file: kernel.cl" in draft and "TODO" in draft and "/tmp" not in draft
    assert "job.yaml:1" in wrong and "/tmp" not in wrong
    assert "none" in absent
    assert right == "scale: valid; not compiled"


def test_a_tool_may_do_what_its_key_may(service: Service) -> None:
    job_id = submitted(service)
    reader = service.new_key(scopes=[KeyScope.READ])
    assert say(service, "status", reader, job=job_id)["id"] == job_id
    assert "submit" in say(service, "submit", reader, job=JOB)
    foreign = service.new_key(tenant="foreign")
    for tool in ("status", "result", "cancel", "trials"):
        assert say(service, tool, foreign, job=job_id).endswith(f"no job {job_id}"), tool
    assert say(service, "open_questions", foreign, job=job_id) == []
    assert say(service, "status", job=job_id)["state"] == "queued", "nobody cancelled it"


@pytest.mark.parametrize("headers", [{}, bearer("ws_wrong_key")], ids=["no key", "wrong key"])
def test_without_a_key_there_are_no_tools(service: Service, headers: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with service.client(None) as http:
        reply = http.post("/mcp", json=body, headers=headers)
    assert reply.status_code == 401


def test_what_is_out_of_bounds_is_said(embedded: Service) -> None:
    assert "wait_s" in say(embedded, "status", job="x", wait_s=1e9)
    assert "job" in say(embedded, "status", job="x" * 65)


def test_an_agent_on_this_machine_uses_stdin_and_stdout(service: Service) -> None:
    async def run() -> tuple[set[str], Any]:
        url = str(service.http.base_url).rstrip("/")
        command = ["-m", "warpsmith", "mcp", "--url", url]
        env = {"WARPSMITH_API_KEY": service.key}
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=env)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            return names, await call(client, "submit", job=JOB)

    names, status = asyncio.run(run())
    assert names == TOOLS
    assert status["state"] == "queued"
