"""Throw-away children: compilers, devices and references run there, never in a worker."""

from warpsmith.sandbox.hosts.compile_host import CompilePool
from warpsmith.sandbox.hosts.device_host import ChildOpener, Probe, probe_devices
from warpsmith.sandbox.hosts.reference_host import ReferenceRunner, device_references
from warpsmith.sandbox.hosts.sanitize_host import Sanitizer, sanitizer_for

__all__ = [
    "ChildOpener",
    "CompilePool",
    "Probe",
    "ReferenceRunner",
    "Sanitizer",
    "device_references",
    "probe_devices",
    "sanitizer_for",
]
