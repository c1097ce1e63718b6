"""Mistakes in a job: refused before it is stored, with the field, and said alike by the check."""

import copy
import html
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from api.routes import service_checks
from db.repositories.workers import WorkerRepository
from testbed.api_service import Service
from tests.api.jobs import body
from tests.unit.cli.first_job_mistakes import SOURCE
from warpsmith.device_checks.absent_devices import any_cuda_device
from warpsmith.domain.device import DeviceInfo
from warpsmith.job_files.jobfile import load_job

ROOT = Path(__file__).parents[2]
JOBS = sorted(
    [*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("tests/**/*.yaml"), *ROOT.glob("testbed/**/*.yaml")]
)
ADD: dict[str, Any] = {
    "name": "addk",
    "kernel": {
        "backend": "opencl",
        "source": SOURCE,
        "entry": "addk",
        "arguments": [
            {"name": "a", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "b", "dtype": "float32", "role": "input", "shape": ["n"]},
            {"name": "y", "dtype": "float32", "role": "output", "shape": ["n"]},
            {"name": "n", "dtype": "int32", "role": "scalar", "value": "n"},
        ],
        "launch": {"grid": ["ceil_div(n, 64)"], "block": [64]},
    },
    "workloads": [{"dimensions": {"n": 100000}}],
    "reference": {
        "kind": "numpy",
        "source": "def reference(inputs, dims):\n"
        '    total = inputs["a"] + 2.0 * inputs["b"]\n    return {"y": total}\n',
    },
    "budget": {"trials": 20, "seconds": 30},
}
CUDA = (
    SOURCE.replace("__kernel", "__global__")
    .replace("__global const", "const")
    .replace("__global float", "float")
)
CUDA = CUDA.replace("get_global_id(0)", "blockIdx.x * blockDim.x + threadIdx.x")


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of the value at a dotted path."""

    def change(job: dict[str, Any]) -> None:
        at: Any = job
        *parents, last = path.split(".")
        for part in parents:
            at = at[int(part)] if isinstance(at, list) else at[part]
        at[int(last) if isinstance(at, list) else last] = value

    return change


def text(path: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    """A change of a part of a text."""

    def change(job: dict[str, Any]) -> None:
        section, name = path.split(".")
        assert old in job[section][name]
        job[section][name] = job[section][name].replace(old, new)

    return change


def swapped(job: dict[str, Any]) -> None:
    """Two arguments in each other's place."""
    a = job["kernel"]["arguments"]
    a[1], a[2] = a[2], a[1]


def for_cuda(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """The job in CUDA, with parts of its launch replaced."""

    def change(job: dict[str, Any]) -> None:
        job["kernel"] |= {"backend": "cuda", "source": CUDA}
        job["kernel"]["launch"] |= changes

    return change


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], None], str, int | None]] = {
    "a misspelt entry": (put("kernel.entry", "adk"), "kernel.entry", None),
    "arguments in the wrong order": (swapped, "kernel.arguments.1.name", None),
    "a reference with a syntax error": (text("reference.source", "total}", "total"), "reference.source", 3),
    "a missing brace": (text("kernel.source", "    }\n}", "    }\n"), "kernel.source", 2),
    "a brace too many": (text("kernel.source", "    }\n}", "    }\n}\n}"), "kernel.source", 8),
    "a bracket left open": (text("kernel.source", "b[i]", "b[i"), "kernel.source", 5),
    "a misspelt type": (text("kernel.source", "const float *a", "const flot *a"), "kernel.source", 1),
    "a block over every CUDA device's": (for_cuda(block=[100000]), "kernel.launch.block.0", None),
    "a product over every CUDA device's": (for_cuda(block=[64, 32]), "kernel.launch.block", None),
    "an argument left out": (lambda job: job["kernel"]["arguments"].pop(), "kernel.arguments", None),
    "another type": (put("kernel.arguments.0.dtype", "float64"), "kernel.arguments.0.dtype", None),
    "a scalar for a pointer": (
        put("kernel.arguments.1", {"name": "b", "dtype": "float32", "role": "scalar", "value": 1}),
        "kernel.arguments.1.role",
        None,
    ),
    "an output that the kernel cannot write": (
        put("kernel.arguments.0.role", "inout"),
        "kernel.arguments.0.role",
        None,
    ),
    "a reference of another name": (
        text("reference.source", "def reference", "def ref"),
        "reference.function",
        None,
    ),
    "a reference that returns nothing": (text("reference.source", "return", "out ="), "reference.source", 1),
    "a reference that returns another name": (text("reference.source", '"y"', '"z"'), "reference.source", 3),
    "a reference without an import": (
        text("reference.source", "return {", "return {**{}, 'y': nump.ones(3)} if 0 else {"),
        "reference.source",
        3,
    ),
    "a misspelt name": (
        text("kernel.source", "int i = ", "const int count = n; int i = cuont - count + "),
        "kernel.source",
        3,
    ),
    "CUDA for OpenCL": (put("kernel.source", CUDA), "kernel.backend", None),
    "an indent in a reference": (text("reference.source", "    return", "  return"), "reference.source", 3),
    "a field that is none": (put("budgett", {}), "budgett", None),
    "another language's option": (put("kernel.options", ["--use_fast_math"]), "kernel.options.0", None),
    "a constraint that nothing meets": (
        lambda job: job.update(
            parameters=[{"name": "SIZE", "values": [64]}], constraints=[{"expression": "SIZE > 9999"}]
        ),
        "constraints.0",
        None,
    ),
    "more memory than any device has": (
        put("workloads.0.dimensions.n", 66666666667),
        "workloads.0.dimensions",
        None,
    ),
    "a macro in the place of a name": (put("kernel.options", ["-Di=4"]), "kernel.options", None),
}


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The right job with a change."""
    job = copy.deepcopy(ADD)
    change(job)
    return job


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_before_anything_is_stored(http: httpx2.Client, name: str) -> None:
    change, field, line = MISTAKES[name]
    job = changed(change)
    reply = http.post("/v1/jobs", json=job)
    assert reply.status_code == 422, reply.text
    errors = {(e["field"], e["line"]): e["message"] for e in reply.json()["errors"]}
    assert (field, line) in errors
    check = http.post("/v1/jobs/check", json=job)
    assert check.status_code == 200
    told = [f for f in check.json()["findings"] if f["severity"] == "error"]
    assert {(f["field"], f["line"]): f["message"] for f in told} == errors
    assert check.json()["valid"] is False


def test_the_right_job_is_accepted_and_stored_by_submission_only(http: httpx2.Client) -> None:
    job = ADD | {"name": "checked only"}
    found = http.post("/v1/jobs/check", json=job).json()
    assert found == {"valid": True, "findings": [], "compiled": False}
    assert http.get("/v1/jobs?name=checked only").json()["items"] == []
    assert http.post("/v1/jobs", json=job).status_code == 202


@pytest.mark.parametrize("path", JOBS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_job_of_this_repository_is_accepted(path: Path, service: Service) -> None:
    service_checks.check_job(load_job(path), service.settings)


HEAD = "def reference(i, d):\n    "


@pytest.mark.parametrize(
    "reference",
    [
        f"from numpy import *\n{HEAD}return {{'y': add(i['a'], 2 * i['b'])}}",
        f"import numpy.linalg\n{HEAD}return dict(y=numpy.add(i['a'], 2 * i['b']))",
        f"{HEAD}o = {{}}\n    for k in ['y']:\n        o[k] = np.add(i['a'], i['b'])\n    return o",
        f"{HEAD}def f():\n        return {{'z': 1}}\n    return f() | {{'y': i['a']}}",
        f"{HEAD}if (n := d['n']) < 0:\n        raise ValueError(n)\n    return {{'y': n, **i}}",
        f"{HEAD}match d:\n        case {{'n': n, **rest}}:\n            return {{'y': [n, rest]}}",
        f"exec('def more(x): return x')\n{HEAD}return {{'y': more(i['a'])}}",
        f"class C:\n    v = 2\n{HEAD}k = C\n    return {{'y': [x * k.v for x in i['a']]}}",
        f"{HEAD}global seen\n    seen = 2\n    return {{'y': g(i)}}\ndef g(i):\n    return seen",
    ],
)
def test_a_reference_that_may_be_right_is_accepted(http: httpx2.Client, reference: str) -> None:
    job = changed(put("reference.source", reference))
    assert http.post("/v1/jobs/check", json=job).json()["findings"] == []


def test_warnings_are_said_and_refuse_nothing(http: httpx2.Client) -> None:
    job = changed(put("tolerances", {"y": {"rtol": 0, "atol": 0}}))
    found = http.post("/v1/jobs/check", json=job).json()
    assert [(f["severity"], f["field"]) for f in found["findings"]] == [("warning", "tolerances.y")]
    assert found["valid"] is True
    assert http.post("/v1/jobs", json=job).status_code == 202


@pytest.mark.parametrize(
    "source",
    [
        "#ifdef X\n#define BEGIN {\n#else\n#define BEGIN { {}\n#endif\n" + SOURCE.replace("\n{", "\nBEGIN"),
        "#if 1\nvoid f(int a) {\n#else\nvoid f(long a) {\n#endif\n}\n" + SOURCE,
        '// {\n/* ( */\n__constant char s[] = "}";\n' + SOURCE,
        SOURCE.replace("b[i]", "b[(int[]){0}[0] + i]"),
        "typedef float flot;\n" + SOURCE.replace("float *a", "flot *a"),
        SOURCE.replace("float *a", "void *a").replace("a[i]", "((__global const float *)a)[i]"),
        "typedef struct { float x; } Float;\n"
        + SOURCE.replace("float *a", "Float *a").replace("a[i]", "a[i].x"),
        "#define flot float\n" + SOURCE.replace("float *a", "flot *a"),
        SOURCE.replace("int i = ", "int count = 0; int counts = n; int i = count - count + "),
        SOURCE.replace("const int i = ", "\n#if TRAP\nint counts = count;\n#endif\nconst int i = "),
        "#define counts 0\n" + SOURCE.replace("int i = ", "int count = 0; int i = counts + count + count + "),
        SOURCE.replace("int i = ", "int count = 0; int i = count + CLK_COUNT * 0 + ").replace(
            "__kernel", "constant int CLK_COUNT = 0;\n__kernel"
        ),
        "/* } */\n" + SOURCE + "/* { never ends",
    ],
)
def test_what_may_compile_is_not_refused(http: httpx2.Client, source: str) -> None:
    reply = http.post("/v1/jobs", json=changed(put("kernel.source", source)))
    assert reply.status_code == 202, reply.text


@pytest.mark.parametrize(
    "source",
    [
        "reference = lambda inputs, dims: {'y': inputs['a']}",
        "from numpy import *\ndef other(i, d): return {'y': 1}\nreference = other",
        "def reference(inputs, dims):\n    out = {}\n    out['y'] = 1\n    return out",
        "def reference(inputs, dims):\n    return dict(y=1)",
        "def reference(inputs, dims):\n    def f(): return {'z': 1}\n    return {**f(), 'y': 2}",
    ],
)
def test_a_reference_that_may_run_is_not_refused(http: httpx2.Client, source: str) -> None:
    reply = http.post("/v1/jobs", json=changed(put("reference.source", source)))
    assert reply.status_code == 202, reply.text


@pytest.mark.parametrize(
    "source", ["(" * 60000, "x=" + "-" * 60000 + "1", "a" + ".b" * 25000, "\0", "\ud800"]
)
def test_a_reference_that_is_none_is_refused_in_words(http: httpx2.Client, source: str) -> None:
    job = changed(put("reference.source", source))
    reply = http.post("/v1/jobs", content=json.dumps(job), headers={"Content-Type": "application/json"})
    assert reply.status_code == 422


def test_a_long_source_is_left_to_a_worker(http: httpx2.Client) -> None:
    job = changed(put("kernel.source", SOURCE + "// long\n" * 10000 + "{"))
    found = http.post("/v1/jobs/check", json=job).json()
    assert found["valid"] is True
    assert [f["message"].partition(":")[0] for f in found["findings"]] == ["not read"]
    assert http.post("/v1/jobs", json=job).status_code == 202


def test_what_is_no_job_at_all(http: httpx2.Client) -> None:
    assert http.post("/v1/jobs/check", json=[1]).status_code == 422
    assert http.post("/v1/jobs/check", json={}).json()["valid"] is False


@contextmanager
def worker(service: Service, *devices: DeviceInfo) -> Iterator[None]:
    """A living worker with these devices, until the context ends."""
    with service.database.write() as session:
        row = WorkerRepository(session).register(
            secrets.token_hex(8), "here", 1, "1", ["control"], devices, {}
        )
        worker_id = row.id
    yield
    with service.database.write() as session:
        WorkerRepository(session).stop(worker_id)


def device(uid: str, threads: int) -> DeviceInfo:
    """A CUDA device whose blocks take that many threads."""
    found = any_cuda_device("sm_90")
    limits = found.limits.model_copy(
        update={"max_threads_per_block": threads, "max_block_x": threads, "total_memory_bytes": 8 << 30}
    )
    return found.model_copy(update={"uid": uid, "name": uid, "limits": limits})


def test_the_limits_are_those_of_living_devices(embedded: Service) -> None:
    job = changed(for_cuda(block=[512]))
    with worker(embedded, device("small", 256)):
        reply = embedded.http.post("/v1/jobs", json=job)
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["message"] == "block x is 512; small takes 1 to 256"
    assert embedded.http.post("/v1/jobs", json=job).status_code == 202
    with worker(embedded, device("small", 256), device("large", 1024)):
        assert embedded.http.post("/v1/jobs", json=job).status_code == 202


def test_one_device_that_meets_a_constraint_is_enough(embedded: Service) -> None:
    job = changed(for_cuda())
    job["parameters"] = [{"name": "SIZE", "values": [512]}]
    job["constraints"] = [{"expression": "SIZE <= device.max_threads_per_block"}]
    with worker(embedded, device("small", 256), device("large", 1024)):
        assert embedded.http.post("/v1/jobs", json=job).status_code == 202
    with worker(embedded, device("small", 256)):
        errors = embedded.http.post("/v1/jobs", json=job).json()["errors"]
        assert [e["field"] for e in errors] == ["constraints.0"]


def test_a_job_without_a_worker_says_so_at_once(service: Service) -> None:
    status = service.http.post("/v1/jobs", json=changed(for_cuda())).json()
    words = "no worker is alive; start one with `warpsmith worker`; waiting for a worker with back end cuda"
    # A machine's own worker may be about to start.
    assert status["detail"] == ("" if service.settings.embedded else words)
    assert status["detail"] in service.http.get(f"/jobs/{status['id']}").text
    with worker(service, device("small", 256)):
        found = service.http.get(f"/v1/jobs/{status['id']}").json()
        assert found["detail"] == (
            "" if service.settings.embedded else "waiting for a worker with back end cuda"
        )


def test_the_same_submission_again_is_not_checked_again(http: httpx2.Client, key: str) -> None:
    first = http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": key})
    assert first.status_code == 202
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("api.routes.jobs.check_job", lambda *_: pytest.fail("checked again"))
        again = http.post("/v1/jobs", json=body(), headers={"Idempotency-Key": key})
    assert again.json()["id"] == first.json()["id"]


def test_the_page_lists_what_is_unfinished(http: httpx2.Client) -> None:
    job = yaml.safe_dump(ADD).replace("name: addk", "name: addk  # TODO: a better name", 1)
    page = http.post("/new", data={"job": job, "do": "validate"}).text
    assert "TODO is left: a better name" in page
    assert "Not compiled" in page
    assert "Nothing is wrong" not in page
    wrong = http.post("/new", data={"job": job.replace("float *a", "flot *a"), "do": "validate"})
    assert wrong.status_code == 422
    assert "did you mean" in wrong.text
    assert "TODO is left" in wrong.text


def test_who_submits_may_have_the_source_unread(http: httpx2.Client) -> None:
    job = changed(put("kernel.entry", "adk"))
    assert http.post("/v1/jobs?check=false", json=job).status_code == 202
    refused = job | {"budget": {"trials": 1, "seconds": 1}, "kernel": job["kernel"] | {"options": ["-I/x"]}}
    assert http.post("/v1/jobs?check=false", json=refused).status_code == 422


def test_a_job_that_is_changed_and_submitted_again_is_as_valid_as_it_was(http: httpx2.Client) -> None:
    job = http.post("/v1/jobs", json=ADD | {"name": "first"}).json()["id"]
    page = http.get(f"/new?from={job}").text
    fields = {
        name: html.unescape(re.search(rf'<textarea[^>]*name="{name}"[^>]*>(.*?)</textarea>', page, re.S)[1])  # type: ignore[index]
        for name in ("source", "job")
    }
    assert "kind: numpy" in fields["job"]
    checked = http.post("/new", data=fields | {"backend": "opencl", "entry": "addk", "do": "validate"}).text
    assert "No errors" in checked, checked
