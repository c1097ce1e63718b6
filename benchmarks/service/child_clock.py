"""Where the seconds of a child go: `install` wraps functions of the process that calls it.

Before each reply the seconds so far are written to a file in the child's private folder, which the bench
reads when the child is ended.
"""

import functools
import importlib
import json
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE = "clock.json"
WRAPPED = (
    ("open the device", "warpsmith.backends.cuda.backend:open_device"),
    ("open the device", "warpsmith.backends.opencl.backend:open_device"),
    ("confine", "warpsmith.sandbox.confinement.confine:confine"),
    ("confine", "warpsmith.sandbox.children.device_child:confine"),
    ("confine", "warpsmith.sandbox.children.reference_child:confine"),
    ("draw", "warpsmith.sandbox.memory.buffers:draw_buffer"),
    ("draw", "warpsmith.sandbox.children.reference_child:draw_wide"),
    ("reference", "warpsmith.sandbox.children.reference_child:_compute"),
    ("keep as wanted", "warpsmith.sandbox.children.reference_child:as_wanted"),
    ("transfer up", "warpsmith.backends.addressed_memory:AddressedMemory.write"),
    ("transfer up", "warpsmith.backends.opencl.backend:_Memory.write"),
    ("transfer down", "warpsmith.backends.addressed_memory:AddressedMemory.read"),
    ("transfer down", "warpsmith.backends.opencl.backend:_Memory.read"),
    ("allocate", "warpsmith.backends.addressed_memory:Slabs.allocate"),
    ("free", "warpsmith.backends.addressed_memory:AddressedMemory.free"),
    ("allocate and draw sets", "warpsmith.sandbox.memory.buffers:WorkloadBuffers.rotation"),
    ("inputs unchanged", "warpsmith.sandbox.memory.buffers:WorkloadBuffers.changed_inputs"),
    ("spoil and redraw", "warpsmith.sandbox.memory.buffers:WorkloadBuffers.scratch"),
    ("spoil and redraw", "warpsmith.sandbox.memory.buffers:WorkloadBuffers.redraw"),
    ("load", "warpsmith.backends.cuda.device:CudaDevice.load"),
    ("load", "warpsmith.backends.opencl.backend:OpenClDevice.load"),
    ("launch", "warpsmith.backends.graph_timed_device:GraphTimedDevice.launch"),
    ("launch", "warpsmith.backends.opencl.backend:OpenClDevice.launch"),
    ("warm up", "warpsmith.backends.graph_timed_device:GraphTimedDevice._warm_up"),
    ("capture", "warpsmith.backends.cuda.graph:GraphTimer.capture"),
    ("replay", "warpsmith.backends.cuda.graph:GraphTimer.replay_us"),
    ("time", "warpsmith.backends.graph_timed_device:GraphTimedDevice.time"),
    ("time", "warpsmith.backends.opencl.backend:OpenClDevice.time"),
    ("send", "warpsmith.sandbox.transport.frames:Channel._write"),
    ("receive", "warpsmith.sandbox.transport.frames:Channel._read"),
    ("wait for a request", "warpsmith.sandbox.transport.frames:_wait"),
)
"""Functions of children whose seconds are told apart. A wait while sending is one as well."""

seconds: dict[str, float] = defaultdict(float)
"""Seconds of this process by part, each without those of the parts that it calls."""
_inner: list[float] = []


def install(private: Path) -> None:
    """Wrap what this process can import, and keep its seconds in a file of that folder."""
    for part, place in WRAPPED:
        module, _, name = place.partition(":")
        *owners, last = name.split(".")
        with suppress(ImportError, AttributeError):
            owner = functools.reduce(getattr, owners, importlib.import_module(module))
            setattr(owner, last, timed(part, getattr(owner, last)))
    _write_before_replies(private / FILE)


def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its seconds added to a part."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        _inner.append(0.0)
        began = time.monotonic()
        try:
            return function(*args, **kwargs)
        finally:
            took = time.monotonic() - began
            seconds[part] += took - _inner.pop()
            if _inner:
                _inner[-1] += took

    return run


def _write_before_replies(path: Path) -> None:
    from warpsmith.sandbox.transport.frames import Channel

    send = Channel.send

    @functools.wraps(send)
    def written(self: Channel, *args: Any, **kwargs: Any) -> None:
        with suppress(OSError):
            path.write_text(json.dumps(seconds))
        send(self, *args, **kwargs)

    Channel.send = written  # type: ignore[method-assign]
