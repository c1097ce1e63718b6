"""One trace a job, over the processes of the service, sent to a collector over HTTP."""

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from testbed.deadlines import comes_true, stretched
from testbed.recordings import replay_job, write_recording
from testbed.service import Service, ended
from warpsmith.system.tracing import root_of


class Collector(ThreadingHTTPServer):
    """Keeps the spans that it is sent, by the name of the program."""

    def __init__(self) -> None:
        self.spans: dict[str, list[Span]] = defaultdict(list)
        super().__init__(("127.0.0.1", 0), _Handler)

    def wait_for(self, program: str, name: str, count: int, seconds: float = 60) -> None:
        """Wait until so many spans of that name have come."""
        came = comes_true(
            lambda: sum(span.name == name for span in list(self.spans[program])) >= count, seconds
        )
        assert came, f"{count} spans {name} did not come"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Collector)
        for of_program in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {a.key: a.value.string_value for a in of_program.resource.attributes}
            for scope in of_program.scope_spans:
                self.server.spans[names["service.name"]] += scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_all_that_is_done_for_a_job_is_in_its_trace(collector: Collector, tmp_path: Path) -> None:
    settings = {
        "WARPSMITH_REPLAY_DIR": str(write_recording(tmp_path / "recordings")),
        "WARPSMITH_REPLAY_TRIAL_S": "0.01",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    service = Service(tmp_path / "data", settings).start()
    try:
        jobs = [service.submit(replay_job(f"traced {n}", strategy="search")) for n in range(2)]
        for job in jobs:
            assert service.wait(job, ended, seconds=60)["state"] == "done"
        # A span ends after the job does, and a worker that is stopped may take the last ones with it.
        collector.wait_for("warpsmith-worker", "verify", len(jobs))
    finally:
        service.stop()
    assert set(collector.spans) == {"warpsmith-api", "warpsmith-worker"}
    for job in jobs:
        root = root_of(job)
        of_job = {
            program: [s for s in spans if s.trace_id == root.trace_id.to_bytes(16)]
            for program, spans in collector.spans.items()
        }
        assert [s.name for s in of_job["warpsmith-api"]] == ["submit"]
        worked = of_job["warpsmith-worker"]
        assert {s.name for s in worked} == {"baseline", "agent_step", "slice", "verify"}
        for span in worked:
            told = {a.key: a.value for a in span.attributes}
            assert told["warpsmith.job"].string_value == job
            assert told["warpsmith.attempt"].int_value == 1
            assert span.parent_span_id == root.span_id.to_bytes(8)
            assert span.end_time_unix_nano > span.start_time_unix_nano
        trials = [a.value.int_value for s in worked for a in s.attributes if a.key == "warpsmith.trials"]
        assert sum(trials) == 20


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9"])
def test_only_who_names_a_collector_pays_for_it(endpoint: str) -> None:
    program = (
        "import sys; from warpsmith.system import tracing; tracing.configure('x')\n"
        "with tracing.job_span('baseline', 'job', attempt=1) as span:\n"
        "    print('opentelemetry.sdk.trace' in sys.modules, span.is_recording())"
    )
    environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    command = [sys.executable, "-c", program]
    told = subprocess.check_output(command, env=environment, text=True, timeout=stretched(60))
    assert told.split() == [str(bool(endpoint))] * 2
