"""Traces, where an operator wants them: one trace a job, over all processes and machines.

OpenTelemetry's own variables decide (`OTEL_EXPORTER_OTLP_ENDPOINT` and its kin); without them, or without
the `otel` extra, spans cost nothing. The trace's id follows from the job's, so nothing has to be handed on
between processes, and who knows a job finds its trace.
"""

import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

log = logging.getLogger(__name__)


def configure(program: str) -> None:
    """Send the spans of this process to the collector that the environment names; once a process.

    Call it in the process that makes spans: the thread that sends them does not survive a fork.

    Args:
        program: the service's name in the traces, where OTEL_SERVICE_NAME does not say otherwise.
    """
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        log.warning("a collector of traces is named, but the `otel` extra of warpsmith is not installed")
        return
    provider = TracerProvider(
        resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or program})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@contextmanager
def job_span(name: str, job_id: str, **attributes: str | int | float) -> Iterator[Span]:
    """A span of a job's trace around the block; an exception marks it as failed and goes on."""
    parent = trace.set_span_in_context(NonRecordingSpan(root_of(job_id)))
    tracer = trace.get_tracer("warpsmith")
    told = {"warpsmith.job": job_id} | {f"warpsmith.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(name, context=parent, attributes=told) as span:
        yield span


def root_of(job_id: str) -> SpanContext:
    """The root of a job's trace; no process sends that span itself."""
    digest = hashlib.sha256(job_id.encode()).digest()
    return SpanContext(
        trace_id=int.from_bytes(digest[:16]),
        span_id=int.from_bytes(digest[16:24]),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
