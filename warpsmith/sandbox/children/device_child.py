"""The device child: one device, driven by frames. It receives binaries, plans and launches; never a source,
an expected output or a credential."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from warpsmith.backends.base import Device, DeviceFault, LaunchRefused, PageGuarding, Program, Repeats
from warpsmith.backends.registry import backend_module
from warpsmith.domain.device import Backend
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.memory import GuardZones, PagesAt
from warpsmith.domain.jobs.plan import LONG_LAUNCH_US, STEADY_LAUNCH_US, CaseKey, Compiled
from warpsmith.domain.templates.outcome import CompileFacts
from warpsmith.errors import Unavailable
from warpsmith.sandbox.children.timed_launch_check import TimedWatch
from warpsmith.sandbox.confinement.confine import Confinement, SyscallFilter, confine, memory_limit
from warpsmith.sandbox.confinement.toolkit_folders import toolkit_folders
from warpsmith.sandbox.memory.buffers import FIRST, WorkloadBuffers
from warpsmith.sandbox.memory.fresh_inputs import OtherMemory
from warpsmith.sandbox.transport.child import take_channel
from warpsmith.sandbox.transport.frames import Blob, Channel, Received
from warpsmith.sandbox.transport.messages import (
    Json,
    case_from_json,
    plan_from_json,
    size_from_json,
    timing_from_json,
)
from warpsmith.sandbox.transport.process import system_paths

GIVE_UP_SAMPLES = 3
MEMORY_BYTES = 48 << 30
"""Limit in bytes on the host memory of a device child, unless the operator sets a lower one."""


def main(argument: dict[str, Any]) -> None:
    """Probe, or open a device and serve requests until the parent closes the pipe."""
    channel = take_channel()
    if argument.get("probe"):
        channel.send(_probe([Backend(name) for name in argument["probe"]]))
        return
    backend = Backend(argument["backend"])
    module = backend_module(backend)
    warm = getattr(module, "import_device", None)
    if warm is not None:
        warm()
    watched = bool(argument.get("watched"))
    # A sanitizer's process and the watched one communicate in ways that confinement would block.
    most = memory_limit(int(argument.get("memory_bytes") or MEMORY_BYTES))
    confined = not watched and _confine(backend, Path(argument["private"]), most)
    watched_objects = getattr(module, "refuse_objects_with", None)
    if watched_objects is not None:
        watched_objects(lambda reason: _end(channel, reason))
    channel.receive()  # it may be a spare for a while
    try:
        device = module.open_device(int(argument["index"]))
    except (Unavailable, DeviceFault) as exc:
        channel.send({"fault": str(exc)})
        return
    device.apart |= watched
    channel.send({"ready": True, "confined": confined})
    _Server(channel, device, guarded=not watched).serve()
    device.close()


def _end(channel: Channel, reason: str) -> NoReturn:
    """End this process before a driver loads an object that it must not load."""
    channel.send({"fault": reason[:1000]})
    os._exit(1)


def _probe(backends: Sequence[Backend]) -> Json:
    devices, unavailable = [], {}
    for backend in backends:
        try:
            devices += [d.model_dump(mode="json") for d in backend_module(backend).probe()]
        except Unavailable as exc:
            unavailable[backend.value] = str(exc)
    return {"devices": devices, "unavailable": unavailable}


def _confine(backend: Backend, private: Path, memory_bytes: int) -> bool:
    if not backend.language.lists_root:
        # The driver maps its own files and reads its /proc entries; the environment there is empty. ROCm's
        # runtime loads libraries of its folder when a device is opened, and its devices are /dev/kfd and
        # /dev/dri; which other files of /dev it needs is not known, since it has not run here.
        read = (*system_paths(), Path("/proc"), Path("/etc"), Path("/run"), *toolkit_folders())
        return confine(
            Confinement(
                read=read,
                write=(private,),
                devices=(Path("/dev"),),
                data_bytes=memory_bytes,
                calls=SyscallFilter.DRIVER,
            )
        )
    devices = (Path("/dev/null"), Path("/dev/dri"), Path("/dev/kfd"))
    return confine(
        Confinement(
            read=system_paths(), write=(private,), list_root=True, devices=devices, memory_bytes=memory_bytes
        )
    )


class _Server:
    def __init__(self, channel: Channel, device: Device, *, guarded: bool) -> None:
        self._channel = channel
        self._guarded = guarded
        self._device = device
        self._programs: dict[int, Program] = {}
        self._long_us: dict[tuple[int, CaseKey, LaunchSize], float] = {}
        """Times of launches that were timed before and are long, µs."""
        self._checked: set[CaseKey] = set()
        """Workloads of which a check launched a kernel last: it left the answer to a set in that set's own
        output, where the first timed launch must not find it."""
        self._workloads: dict[CaseKey, WorkloadBuffers] = {}
        self._other = OtherMemory(device)
        self._next = 0

    def serve(self) -> None:
        handlers = {
            "prepare": self._prepare,
            "release": self._release,
            "load": self._load,
            "unload": self._unload,
            "run": self._run,
            "time": self._time,
        }
        while True:
            request, blobs = self._channel.receive()
            if request["do"] == "end":
                return
            try:
                header, out = handlers[request["do"]](request, blobs)
            except LaunchRefused as exc:
                self._channel.send({"refused": str(exc)[:1000]})
                continue
            except DeviceFault as exc:
                self._channel.send({"fault": str(exc)[:1000]})
                return
            except MemoryError as exc:
                self._channel.send({"fault": f"the host's memory is not enough: {exc}"[:1000]})
                return
            self._channel.send(header, out)

    def _prepare(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        plan = plan_from_json(request["plan"])
        self._drop(plan.key)
        guards = GuardZones(**request["guards"]) if self._guarded else GuardZones(0)
        device = self._device if guards.pages is None else _guarding(self._device, PagesAt(guards.pages))
        self._workloads[plan.key] = WorkloadBuffers(device, plan, guards)
        return {}, []

    def _release(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        self._drop(case_from_json(request["case"]))
        return {}, []

    def _drop(self, key: CaseKey) -> None:
        buffers = self._workloads.pop(key, None)
        if buffers is not None:
            buffers.free()

    def _load(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        variables = tuple(request["globals"])
        first, *then = request["entries"]
        binary = bytes(blobs[0])
        compiled = Compiled(binary, first, CompileFacts(), globals=variables, then_entries=tuple(then))
        self._next += 1
        self._programs[self._next] = self._device.load(compiled)
        return {"handle": self._next}, []

    def _unload(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        self._programs.pop(request["handle"]).unload()
        return {}, []

    def _run(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        buffers = self._workloads[case_from_json(request["case"])]
        program, size = self._programs[request["handle"]], size_from_json(request["size"])
        ranges = request["ranges"]
        scratch, symbols = buffers.scratch_of(size), buffers.symbols_of(program)
        buffers.settle()
        buffers.restore()
        symbols.write()
        filled = {}
        if request["poison"]:
            filled = buffers.poison()
            scratch.poison()
        self._checked.add(buffers.plan.key)
        self._device.launch(program, buffers.bound(FIRST, scratch), size)
        header = {
            "guards": buffers.guard_violations() + scratch.guard_violations(),
            "changed": buffers.changed_inputs(whole=ranges is None) + symbols.changed(),
            "names": [b.name for b in buffers.plan.mutated],
            "poison": {name: pattern.hex() for name, pattern in filled.items()},
        }
        out: list[Blob] = _outputs(buffers, ranges)
        if request["repeat"]:
            buffers.restore()
            symbols.write()
            buffers.spoil(0, ranges)
            scratch.spoil()
            self._device.launch(program, buffers.bound(FIRST, scratch), size)
            out += _outputs(buffers, request["again"] if ranges is None else ranges)
        header["globals"] = program.changed_globals()
        return header, out

    def _time(self, request: Json, blobs: Sequence[Received]) -> tuple[Json, list[Blob]]:
        buffers = self._workloads[case_from_json(request["case"])]
        program = self._programs[request["handle"]]
        plan = timing_from_json(request["plan"])
        pairs = buffers.rotation(plan.cache, plan.apart)
        per_sample = plan.launches
        if plan.fresh:
            # No inputs twice in a sample, nor in the next ones if there are sets enough.
            sets = len({pair.inputs for pair in pairs})
            per_sample = min(plan.launches, sets)
            turns = 1 if buffers.in_place else min(plan.samples, sets // per_sample)
            pairs = pairs[: turns * per_sample]
        else:
            buffers.settle()
        limit = plan.give_up_above_us
        size = size_from_json(request["size"])
        scratch = buffers.scratch_of(size)
        # The inputs of the last checked launch are among those that are timed.
        scratch.poison()
        watch = TimedWatch(buffers, plan, pairs, scratch, buffers.symbols_of(program), self._other)

        def stop(samples: Sequence[float]) -> bool:
            return limit is not None and len(samples) >= GIVE_UP_SAMPLES and min(samples) > limit

        launch = (request["handle"], buffers.plan.key, size)
        goes_on = plan.is_warm and plan.cache is CacheState.COLD and buffers.plan.key not in self._checked
        known_us = self._long_us.get(launch, 0.0)
        if known_us < (LONG_LAUNCH_US if goes_on else STEADY_LAUNCH_US):
            known_us = 0.0
        repeats = Repeats(
            watch.choose_samples, per_sample, stop, known_us, buffers.in_place, is_warm=plan.is_warm
        )
        bound = [buffers.bound(pair, scratch) for pair in pairs]
        samples, launches = self._device.time(program, bound, size, repeats, watch)
        self._checked.discard(buffers.plan.key)
        if min(samples) >= LONG_LAUNCH_US:
            self._long_us[launch] = min(samples)
        if not plan.fresh:
            # What a fresh launch left is the answer to no inputs of the walk.
            buffers.walk_on(plan.cache, launches * len(samples))
        header = {"samples_us": samples, "launches": launches, "complete": len(samples) >= watch.samples}
        if not watch.seen:
            return header, []
        header |= {
            "guards": watch.guards,
            "changed": watch.changed,
            "other": watch.other,
            "names": [b.name for b in buffers.plan.mutated],
            "globals": program.changed_globals(),
        }
        return header, watch.outputs


def _guarding(device: Device, at: PagesAt) -> Device:
    if not isinstance(device, PageGuarding):
        raise LaunchRefused("the device has no pages to guard buffers")
    return device.guarding(at)


def _outputs(buffers: WorkloadBuffers, ranges: Json | None) -> list[Blob]:
    return [buffers.read(b.name, None if ranges is None else ranges[b.name]) for b in buffers.plan.mutated]
