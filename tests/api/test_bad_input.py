"""Every kind of bad input gives problem details that name the field and say what would be right."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from api.requests.limits import MAX_BODY_BYTES
from tests.api.jobs import body, changed
from warpsmith.domain.kernels.kernel import MAX_SOURCE_BYTES
from warpsmith.http_models import Problem

JSON = {"Content-Type": "application/json"}
LIMIT = {"rtol": 0.1, "atol": 0.1}

BAD_FIELDS: list[tuple[str, Any, str, str]] = [
    # path in the job, value put there, field named, words of the message
    ("name", "", "name", "should match pattern"),
    ("name", "<script>", "name", "should match pattern"),
    ("nmae", "x", "nmae", "did you mean 'name'?"),
    ("kernel.sauce", "x", "kernel.sauce", "did you mean 'source'?"),
    ("kernel.backend", "replay", "kernel.backend", "replay serves recorded timings for tests"),
    ("kernel.backend", "metal", "kernel.backend", "'cuda', 'opencl', 'hip', 'triton' or 'replay'"),
    ("kernel.source", "x" * (MAX_SOURCE_BYTES + 1), "kernel.source", "at most 262144 characters"),
    ("kernel.source", "void f() {}\0", "kernel.source", "NUL"),
    ("kernel.source", "\ud800", "kernel.source", "valid string"),
    ("kernel.source", None, "kernel", "exactly one of source and source_file"),
    ("kernel.entry", "scale\0", "kernel.entry", "NUL"),
    ("kernel.options", ["-DX=1", "-I/etc"], "kernel.options.1", "'-I/etc' not allowed; allowed are"),
    ("kernel.options", ["-DX=`id`"], "kernel.options.0", "not allowed"),
    ("kernel.options", ["--use_fast_math"], "kernel.options.0", "-cl-"),
    (
        "kernel.includes",
        ["flashinfer"],
        "kernel.includes.0",
        "not permitted by the operator; permitted: cutlass",
    ),
    ("kernel.arguments", [], "kernel.arguments", "at least 1"),
    ("kernel.arguments.0.dtype", "float8", "kernel.arguments.0.dtype", "'bfloat16'"),
    ("kernel.arguments.0.name", "y", "kernel.arguments.1.name", "argument y is declared twice"),
    ("kernel.arguments.0.shape", [], "kernel.arguments.0", "buffer x needs a shape"),
    (
        "kernel.arguments.0.shape",
        ["n", "m"],
        "kernel.arguments.0.shape.1",
        "unknown name 'm' (known: BLOCK, n",
    ),
    ("kernel.arguments.0.shape", ["n - n"], "kernel.arguments.0.shape.0", "'n - n' is 0, below 1"),
    ("kernel.arguments.0.shape", ["n / 3"], "kernel.arguments.0.shape.0", "not a whole number"),
    ("kernel.arguments.2.value", "n / 3", "kernel.arguments.2.value", "not a whole number"),
    ("kernel.arguments.2.value", None, "kernel.arguments.2", "scalar n needs a value"),
    ("kernel.launch.grid", [], "kernel.launch.grid", "at least 1"),
    ("kernel.launch.grid", ["1", "1", "1", "1"], "kernel.launch.grid", "at most 3"),
    ("kernel.launch.grid", ["ceil_div(n, "], "kernel.launch.grid.0", "is not a valid expression"),
    ("kernel.launch.grid", ["ceil_div(n)"], "kernel.launch.grid.0", "cannot be evaluated"),
    ("kernel.launch.grid", ["n // (n - 65536)"], "kernel.launch.grid.0", "divides by zero"),
    ("kernel.launch.grid", [None], "kernel.launch.grid.0", "a number or an expression"),
    ("kernel.launch.block", ["(-8) ** 0.5"], "kernel.launch.block.0", "not a real number"),
    ("kernel.launch.block", ["(1, 2)"], "kernel.launch.block.0", "a list is not a value"),
    ("kernel.launch.block", ["1e999"], "kernel.launch.block.0", "beyond 2^63"),
    ("kernel.launch.block", ["(1,) * 10**9"], "kernel.launch.block.0", "not a number"),
    ("kernel.launch.block", ["'word'"], "kernel.launch.block.0", "gives a word"),
    ("kernel.launch.block", ["device.warps"], "kernel.launch.block.0", "unknown name 'device.warps'"),
    ("kernel.launch.shared_bytes", "m * 4", "kernel.launch.shared_bytes", "unknown name 'm'"),
    ("kernel.launch.shared_bytes", -4, "kernel.launch.shared_bytes", "below 0"),
    ("workloads", [], "workloads", "at least 1"),
    ("workloads.0.dimensions.n", 0, "workloads.0.dimensions.n", "greater than or equal to 1"),
    ("workloads.0.dimensions.n", 2**41, "workloads.0.dimensions.n", "less than or equal to"),
    ("workloads.0.weight", -1, "workloads.0.weight", "greater than 0"),
    ("workloads.0.dimensions.BLOCK", 3, "parameters", "['BLOCK'] are dimensions as well; rename one"),
    ("parameters.0.name", "int", "parameters.0.name", "'int' is reserved in C"),
    ("parameters.0.name", "__CUDA_ARCH__", "parameters.0.name", "is reserved in C"),
    ("parameters.0.name", "min", "parameters.0.name", "is a word of the expression language"),
    ("parameters.0.name", "a b", "parameters.0.name", "should match pattern"),
    ("parameters.0.values", [], "parameters.0.values", "at least 1"),
    ("parameters.0.values", [64, 64], "parameters.0", "values of BLOCK repeat"),
    ("parameters.0.values", [32, 128], "parameters.0", "default 64 of BLOCK is not among its values"),
    ("constraints", [{"expression": "x.y.z"}], "constraints.0.expression", "only one dot"),
    ("constraints", [{"expression": "open('/etc/passwd')"}], "constraints.0.expression", "may be called"),
    ("constraints", [{"expression": "[1][0]"}], "constraints.0.expression", "Subscript is not allowed"),
    ("constraints", [{"expression": "BLOK <= n"}], "constraints.0.expression", "unknown name 'BLOK'"),
    ("reference", {"kind": "numpy"}, "reference.numpy.source", "is missing"),
    ("reference", {"kind": "shell"}, "reference", "'kernel', 'numpy'"),
    ("tolerances", {"x": LIMIT}, "tolerances.x", "no output or inout argument has that name"),
    ("tolerances", {"y": LIMIT | {"share": 0.01}}, "tolerances.y.share", "needs `within`"),
    ("tolerances", {"y": LIMIT | {"share": 0.2, "within": 1}}, "tolerances.y.share", "0.05"),
    ("tolerances", {"y": {"rtol": -1, "atol": 0}}, "tolerances.y.rtol", "greater than or equal to 0"),
    ("searcher", "luck", "searcher", "'default', 'random'"),
    ("rewrite", {"allow": ["unrol"]}, "rewrite.allow.0", "'unroll'"),
    ("objective", {"metric": "power"}, "objective.metric", "'time'"),
    ("budget.trials", 0, "budget.trials", "greater than or equal to 1"),
    ("budget.seconds", float("inf"), "budget.seconds", "finite"),
    ("budget.seconds", float("nan"), "budget.seconds", "finite"),
    ("seed", 2**31, "seed", "less than or equal to"),
]


def problem_of(reply: httpx2.Response, status: int) -> Problem:
    """The problem details of a reply that must have that status."""
    assert reply.status_code == status, reply.text[:500]
    assert reply.headers["content-type"] == "application/problem+json"
    found = Problem.model_validate_json(reply.content)
    assert found.status == status
    return found


@pytest.mark.parametrize(("path", "value", "field", "words"), BAD_FIELDS)
def test_a_bad_field_is_named(http: httpx2.Client, path: str, value: Any, field: str, words: str) -> None:
    # By hand, because a client that checks would not send NaN or half a surrogate pair.
    content = json.dumps(changed(path, value)).encode()
    found = problem_of(http.post("/v1/jobs", content=content, headers=JSON), 422)
    error = found.errors[0]
    assert error.field == field
    assert words in error.message


def test_every_bad_field_is_named_at_once(http: httpx2.Client) -> None:
    job = changed("kernel.arguments.1.dtype", "float8") | {"seed": -1, "name": "?"}
    found = problem_of(http.post("/v1/jobs", json=job), 422)
    assert {e.field for e in found.errors} == {"kernel.arguments.1.dtype", "seed", "name"}


def test_missing_fields_are_named(http: httpx2.Client) -> None:
    found = problem_of(http.post("/v1/jobs", json={}), 422)
    assert {(e.field, e.message) for e in found.errors} == {
        ("name", "is missing"),
        ("kernel", "is missing"),
        ("workloads", "is missing"),
    }


def test_the_service_opens_no_files(http: httpx2.Client) -> None:
    job = body()
    del job["kernel"]["source"]
    job["kernel"]["source_file"] = "/etc/passwd"
    (error,) = problem_of(http.post("/v1/jobs", json=job), 422).errors
    assert error.field == "kernel.source_file"
    assert "send the text as kernel.source" in error.message


def test_dimensions_that_differ_between_workloads_are_named(http: httpx2.Client) -> None:
    job = body(workloads=[{"dimensions": {"n": 8}}, {"dimensions": {"m": 8}}])
    (error,) = problem_of(http.post("/v1/jobs", json=job), 422).errors
    assert (error.field, error.message) == ("workloads.1.dimensions", "must name ['n'], as the first does")


def test_a_workload_whose_name_is_longer_than_its_column_is_refused(http: httpx2.Client) -> None:
    # With n=2**40, which no device has room for, it would have 1200.
    others = {f"n{i}_".ljust(64, "x"): 2**40 for i in range(15)}
    reply = http.post("/v1/jobs", json=body(workloads=[{"dimensions": {"n": 65536} | others}]))
    assert reply.status_code == 202
    assert len(reply.json()["workloads"][0]["workload"]) == 1192
    longer = body(workloads=[{"dimensions": others | {"nn": 2**40}}])
    (error,) = problem_of(http.post("/v1/jobs", json=longer), 422).errors
    assert (error.field, error.message) == (
        "workloads.0.dimensions",
        "names and values have more than 1200 characters",
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"name": ', "JSON decode error at character 9: Expecting value"),
        (b"name: scale\n", "JSON decode error at character 0"),
        (b"[1]", "valid dictionary"),
        (b'"text"', "valid dictionary"),
        (b"null", "valid dictionary"),
        (b"", "is missing"),
    ],
)
def test_a_body_that_is_no_job_is_refused(http: httpx2.Client, content: bytes, words: str) -> None:
    (error,) = problem_of(http.post("/v1/jobs", content=content, headers=JSON), 422).errors
    assert error.field == ""
    assert words in error.message


@pytest.mark.parametrize(
    "content",
    [b"[" * 200_000, b'{"name": "\xff"}', b'{"seed": ' + b"9" * 5000 + b"}"],
    ids=["deep nesting", "not UTF-8", "a number of 5000 digits"],
)
def test_hostile_json_is_a_bad_request(http: httpx2.Client, content: bytes) -> None:
    found = problem_of(http.post("/v1/jobs", content=content, headers=JSON), 400)
    assert found.title == "There was an error parsing the body"


@pytest.mark.parametrize("kind", ["application/yaml", "text/plain", "text/json", None])
def test_a_body_of_another_type_is_refused_with_the_right_one(http: httpx2.Client, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    found = problem_of(http.post("/v1/jobs", content=json.dumps(body()), headers=headers), 415)
    assert found.detail == "send JSON with Content-Type: application/json; `warpsmith submit` takes YAML"


def test_json_with_a_charset_is_json(http: httpx2.Client) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    assert http.post("/v1/jobs", content=json.dumps(body()), headers=headers).status_code == 202


def test_a_body_above_the_limit_is_refused(http: httpx2.Client) -> None:
    found = problem_of(http.post("/v1/jobs", json=changed("kernel.source", "x" * MAX_BODY_BYTES)), 413)
    assert found.detail == f"a request may have {MAX_BODY_BYTES} bytes"


def test_a_body_that_tells_no_length_is_counted_as_it_comes(http: httpx2.Client) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"name": "'
        for _ in range(20):
            yield b"x" * 100_000

    problem_of(http.post("/v1/jobs", content=pieces(), headers=JSON), 413)


def test_a_refused_request_stores_nothing(http: httpx2.Client) -> None:
    newest = http.get("/v1/jobs", params={"limit": 1}).json()["items"]
    http.post("/v1/jobs", json=changed("kernel.options", ["-o/tmp/x"]))
    http.post("/v1/jobs", json=changed("seed", -1))
    assert http.get("/v1/jobs", params={"limit": 1}).json()["items"] == newest
