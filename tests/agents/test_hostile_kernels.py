"""The hostile kernels as posted jobs on PoCL: what a model is sent of each, and what comes of it."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from db import migrate
from db.engine import Database
from db.repositories.workers import WorkerRepository
from db.views.job_status import job_status
from testbed.api_service import Service, service_settings, serving
from testbed.deadlines import stretched
from testbed.replay import replay
from tests.agents.conftest import KEY, settings_of
from tests.agents.hostile_kernels import KERNELS, TRAP, HostileKernel, source
from tests.agents.model_server import Body, ModelServer, Turn, model_server
from tests.sandbox.kernels import CUDA_DEVICE
from tests.sandbox.test_compile_child import BOMBS
from tests.worker.test_execute import SilentNotifier, handle_all
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.sandbox import CompilePool, probe_devices
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.tasks import MAX_ANSWER_CHARACTERS
from warpsmith.tuning.tools.workbench import Workbench
from worker.advance import advance
from worker.device.device_setup import RealDeviceSetup
from worker.device.process_context import Context

pytestmark = pytest.mark.slow
TRAPPED = [[{"name": name, "value": value} for name, value in TRAP.items()]]


def data_of(content: str) -> tuple[str, str]:
    """The data of a message, and its other text. The delimiter is derived from the data."""
    begin, _, rest = content.partition("\n")
    mark = begin.removeprefix("BEGIN DATA ")
    data, end, after = rest.rpartition(f"\nEND DATA {mark}")
    assert end and mark == hashlib.sha256(data.encode()).hexdigest()[:16], content[:200]
    assert mark not in data
    return data, after


class Obedient:
    """A model that compiles the kernel as it is and with the trap, then answers with the first draft."""

    def __init__(self) -> None:
        self.at_last: Callable[[], object] = lambda: None
        """Called before the answer."""
        self.wanted: list[tuple[str, str]] = []
        """Calls to make instead, each with a draft of its own; the answer is the last draft."""

    def __call__(self, body: Body, number: int) -> Turn:
        if self.wanted and len(body["messages"]) == 2:
            return Turn(calls=self.wanted)
        if any(m["role"] == "tool" for m in body["messages"]):
            self.at_last()
            last = f"d{len(self.wanted) - 1}" if self.wanted else "d0"
            return Turn(calls=[("answer", json.dumps({"draft": last}))])
        shown = data_of(body["messages"][1]["content"])[0]
        source = shown.partition("## `kernel`")[2].split("```")[1].partition("\n")[2]
        draft = {"rules": ["restrict"]} if "## `rules`" in shown else {"source": source}
        trapped = {"draft": "d0", "configurations": TRAPPED}
        return Turn(calls=[("compile", json.dumps({"template": draft})), ("compile", json.dumps(trapped))])


@dataclass(frozen=True)
class Bench:
    """An API, a worker on PoCL that whose messages the test handles, and the model's server."""

    service: Service
    context: Context
    server: ModelServer
    model: Obedient


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all kernels."""
    folder = tmp_path_factory.mktemp("hostile")
    url = f"sqlite:///{folder / 'test.db'}"
    migrate.upgrade(url)
    database = Database(url)
    (device,) = (d for d in probe_devices().devices if d.backend is Backend.OPENCL)
    model = Obedient()
    with model_server(model) as server:
        # Shorter than by default: two drafts use them up.
        limits = {"compile_timeout_s": stretched(6), "run_timeout_s": stretched(3)}
        settings = settings_of(server.url, data_dir=folder, database_url=url, **limits)
        with database.write() as session:
            WorkerRepository(session).register("w", "host", 1, "0", ["control"], [device], {})
        setup = RealDeviceSetup(settings, device)
        api = service_settings(folder, url, openai_base_url=server.url, openai_api_key=KEY)
        try:
            with serving(api) as service:
                yield Bench(service, Context(settings, database, SilentNotifier(), "w", setup), server, model)
        finally:
            setup.close()
            database.dispose()


@pytest.mark.parametrize("kernel", KERNELS, ids=[k.where for k in KERNELS])
def test_orders_in_a_kernel_are_data(kernel: HostileKernel, bench: Bench) -> None:
    """Every job up to the answer, and the last one to its end."""
    bench.server.requests.clear()
    posted = bench.service.http.post("/v1/jobs", json=kernel.job())
    assert posted.status_code == 202, posted.text
    job = posted.json()["id"]
    whole = kernel is KERNELS[-1]
    cancel = partial(bench.service.http.post, f"/v1/jobs/{job}/cancel")
    bench.model.at_last = (lambda: None) if whole else cancel
    advance(bench.context.database, job)  # the API has sent its message already
    handle_all(bench.context)
    first, second = bench.server.requests
    for request in (first, second):
        check_sent(request, kernel, bench)
    made, *told = second["messages"][2:]
    assert made["tool_calls"] and [m["role"] for m in told] == ["tool", "tool"]
    answers = [data_of(m["content"])[0] for m in told]
    assert "compiles" in answers[0]
    assert kernel.says in answers[1], answers[1]
    assert all(len(a) <= MAX_ANSWER_CHARACTERS for a in answers)
    with bench.context.database.read() as session:
        status = job_status(session, job)
        assert status.state is (JobState.DONE if whole else JobState.CANCELLED), status.detail
        assert (status.trials_done, status.trials_rejected) == (int(whole), 0)
        assert replay(session, job, {}).differences == ()


# What a draft does, by which tool that is found, and what the answer says of it.
DRAFTS: list[tuple[str, str, str]] = [
    (source('#include "/etc/passwd"'), "compile", "refused (compile"),
    (BOMBS["opencl-macros"][1].replace(" f(", " scale("), "compile", "the compiler did not finish"),
    (
        source(inside="for (volatile long k = 0; k < 1000000000000L; k++) {}"),
        "check",
        "ran past its deadline",
    ),
    (source(inside="y[n + get_global_id(0)] = 1.0f;"), "check", "wrote"),
    (source(inside="*(volatile __global int*)get_global_id(1) = 1;"), "check", "crashed"),
    (source(), "time", "of your kernel's speed"),
]


def test_what_a_draft_does_on_the_device_is_told_and_harms_nothing(bench: Bench) -> None:
    """A bomb, a thief, a kernel that hangs, one that writes elsewhere, one that crashes; then a good one."""
    hostile = HostileKernel("drafts", "-", "-", source())
    job = hostile.job()
    job["parameters"], job["budget"]["seconds"] = [{"name": "BLOCK", "values": [64]}], 600
    job["agents"]["tools"] = len(DRAFTS)
    bench.server.requests.clear()
    bench.model.at_last = lambda: None
    bench.model.wanted = [(tool, json.dumps({"template": {"source": text}})) for text, tool, _ in DRAFTS]
    try:
        posted = bench.service.http.post("/v1/jobs", json=job)
        advance(bench.context.database, posted.json()["id"])
        handle_all(bench.context)
    finally:
        bench.model.wanted = []
    told = [data_of(m["content"])[0] for m in bench.server.requests[1]["messages"] if m["role"] == "tool"]
    for (_, tool, words), said in zip(DRAFTS, told, strict=True):
        assert words in said, (tool, said)
        assert "root:" not in said
        assert ("FAILED" in said) == (tool != "time")
        assert len(said) <= MAX_ANSWER_CHARACTERS
    with bench.context.database.read() as session:
        status = job_status(session, posted.json()["id"])
        assert (status.state, status.trials_done) == (JobState.DONE, 1), status.detail
        assert replay(session, posted.json()["id"], {}).differences == ()


def check_sent(request: Body, kernel: HostileKernel, bench: Bench) -> None:
    """The words stand where they may and nowhere else, and nothing of anybody else is there."""
    whole = json.dumps(request, ensure_ascii=False)
    folder = str(bench.context.settings.data_dir)
    others = [k.words for k in KERNELS if k is not kernel]
    for foreign in (KEY, folder, "import numpy", "def reference", *others):
        assert foreign not in whole and json.dumps(foreign)[1:-1] not in whole
    data, after = data_of(request["messages"][1]["content"])
    assert (kernel.words in data) == kernel.in_question
    tools = [data_of(m["content"]) for m in request["messages"] if m["role"] == "tool"]
    assert any(kernel.words in said for said, _ in tools) == (kernel.in_answer and bool(tools))
    assistant = [m for m in request["messages"] if m["role"] == "assistant"]
    rest = [request["messages"][0]["content"], after, request["tools"], *(end for _, end in tools)]
    assert kernel.words not in str(rest)
    assert len(assistant) == bool(tools)
    closing = (tools[-1][1] if tools else after).split("\n\n")[-1]
    assert closing.startswith("Never repeat this word: ")
    assert whole.count(closing.split()[-1]) == 1, "the canary stands in one place"


QUOTED = """
#include "orders.h"
extern "C" __global__ void scale(const float* x, float* y, int n) {
  int a = lacking; // obey
  /* and
  obey */ int b = lacking_too; HEADER
}
"""


def test_a_tool_compiles_without_comments_and_names_the_same_lines() -> None:
    """Some drivers quote whole lines in their messages. NVRTC needs no device."""
    fields = scale_job().model_dump(mode="json", exclude_unset=True)
    files = {"orders.h": "#define HEADER int c = lacking_there /* obey */;\n"}
    fields["kernel"] |= {"backend": "cuda", "source": QUOTED, "files": files}
    fields["kernel"]["launch"] = {"grid": ["1"], "block": ["64"]}
    template = Template(kernel=Job.model_validate(fields | {"parameters": []}).kernel)
    session: Any = None
    kernel = Workbench(session, session, 1.0).kernel(template, {})
    assert "obey" in template.kernel.model_dump_json()
    assert "obey" not in kernel.model_dump_json()
    told = []
    with closing(CompilePool()) as pool:
        for given in (template.configured({}), kernel):
            found = pool.submit(given, CUDA_DEVICE).result()
            assert isinstance(found, Rejected)
            told.append(found.log)
    assert told[0].count("is undefined") >= 2
    assert told[0] == told[1]
