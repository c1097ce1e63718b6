"""The API's own description: what it was, complete, and with examples that work."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.app import create_app
from api.routes.service_checks import check_job
from testbed.api_service import service_settings
from warpsmith.domain.expressions import Expression
from warpsmith.domain.jobs.job import Job

GOLDEN = Path(__file__).parents[1] / "golden" / "openapi.json"
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `/openapi.json` serves."""
    return create_app(service_settings(tmp_path_factory.mktemp("api")), with_worker=False).openapi()


def operations(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every operation with its name (`POST /v1/jobs`)."""
    for path, item in description["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            yield f"{method.upper()} {path}", operation


def values_of(node: Any, key: str) -> Iterator[Any]:
    """Everything that stands under that key, anywhere."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from values_of(value, key)


def job_examples(description: dict[str, Any]) -> dict[str, Any]:
    """The examples of the body of a submission."""
    content = description["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
    return {name: example["value"] for name, example in content["examples"].items()}


def test_the_description_is_the_golden_one(description: dict[str, Any]) -> None:
    """`WARPSMITH_WRITE_GOLDEN=1 pytest tests/api/test_openapi.py` writes it anew; read the difference."""
    text = json.dumps(description, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("WARPSMITH_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert json.loads(GOLDEN.read_text()) == json.loads(text)


def test_the_service_serves_its_description(http: httpx2.Client, description: dict[str, Any]) -> None:
    assert http.get("/openapi.json").json() == description


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
def test_the_pages_of_the_description_load_nothing_from_elsewhere(http: httpx2.Client, page: str) -> None:
    text = http.get(page).text
    loaded = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
    assert len(loaded) >= 2
    for address in loaded:
        reply = http.get(address, headers={"Authorization": ""})
        assert (address[0], reply.status_code) == ("/", 200), address
        assert reply.content


def test_names_of_operations_are_short_and_their_own(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(description)]
    assert len(set(names)) == len(names)
    assert {"submit", "status", "result", "list_jobs", "cancel"} <= set(names)
    assert all("v1" not in name for name in names)


def test_no_default_is_an_object_and_each_is_said_in_words(description: dict[str, Any]) -> None:
    defaults = [d for d in values_of(description, "default") if isinstance(d, dict)]
    assert all("title" in d or "anyOf" in d for d in defaults), "only fields that are called `default`"
    job = description["components"]["schemas"]["Job"]["properties"]
    assert "kind: kernel" in job["reference"]["description"]
    assert job["labels"]["description"].endswith("Empty by default.")


def test_every_example_is_a_job_that_the_service_takes(
    http: httpx2.Client, description: dict[str, Any], tmp_path: Path
) -> None:
    examples = job_examples(description)
    assert examples
    for name, example in examples.items():
        check_job(Job.model_validate(example), service_settings(tmp_path))
        reply = http.post("/v1/jobs", json=example)
        assert reply.status_code == 202, (name, reply.text)


def test_examples_of_expressions_are_expressions(description: dict[str, Any]) -> None:
    found = [e for examples in values_of(description["components"]["schemas"], "examples") for e in examples]
    assert "ceil_div(n, BLOCK)" in found
    assert all(Expression(example).text == str(example) for example in found)


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    references = set(values_of(description, "$ref"))
    assert references
    assert {r.removeprefix("#/components/schemas/") for r in references} <= schemas.keys()


def test_every_operation_says_what_it_does_and_how_it_fails(description: dict[str, Any]) -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    names = []
    for name, operation in operations(description):
        names.append(name)
        assert operation["description"].endswith("."), name
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert response["content"] == problem, (name, status)
        if operation.get("parameters") or "requestBody" in operation:
            assert "422" in operation["responses"], name
        if "{job_id}" in name:
            assert "404" in operation["responses"], name
    assert "POST /v1/jobs" in names
    assert "POST /v1/jobs/{job_id}/cancel" in names


def test_every_field_of_the_job_form_is_described_or_plain(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    assert schemas["Job"]["required"] == ["name", "kernel", "workloads"]
    for name, schema in schemas.items():
        assert schema.get("description") or schema.get("title") == name or "enum" in schema, name
        if schema.get("type") == "object" and name not in ("HTTPValidationError", "ValidationError"):
            assert schema.get("additionalProperties") is False, f"{name} would swallow a misspelt field"
