"""References from the worker's side."""

import importlib.metadata
import importlib.util
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import numpy as np

from warpsmith.child_environment import child_environment, preloads
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.errors import ChildDied, InvalidInput
from warpsmith.processes.child_deadlines import REFERENCE_S
from warpsmith.processes.cores import usable_cores
from warpsmith.processes.forked_process import start_server
from warpsmith.sandbox.confinement.confine import memory_limit
from warpsmith.sandbox.hosts.halted_children import HaltedChildren
from warpsmith.sandbox.hosts.kept_children import KeptChildren
from warpsmith.sandbox.memory import device_kernels
from warpsmith.sandbox.memory.device_kernels import PARTS
from warpsmith.sandbox.memory.reference_arrays import MODULE
from warpsmith.sandbox.transport.messages import plan_to_json
from warpsmith.sandbox.transport.process import ChildProcess
from warpsmith.verify.dtypes import wanted_dtype
from warpsmith.verify.run_report import Array, ReferenceCase

ELEMENTS_EACH = 1 << 22
"""Elements of all cases per child: a child takes 0.2 s to start, so few elements share one."""
ROOM = 8
"""Expected peak memory of a child, as a multiple of the bytes of a case's buffers in float64."""
WIDE_BYTES = 8
AHEAD_S = 300
"""Limit in seconds on compiling kernels ahead."""
DEVICE_TIMEOUT_S = 10
"""Deadline in seconds of one case on a device: a function that loops over elements is quicker on the host."""


class _TooLate(InvalidInput):
    """A computation missed its deadline. It is not repeated alone: concurrency does not slow it by that
    much."""


@dataclass(frozen=True)
class ReferenceRunner:
    """Implements `tuning.ports.ReferencePort` with children of one job at a time; a child that dies is
    replaced.

    Args:
        timeout_s: deadline of one computation.
        memory_bytes: limit on the address space of a child, libraries included.
        children: limit on concurrent children; 0: one per core.
        kept: keeps children for the next call; by default every call starts its own.
        device: number of the CUDA device on which they compute, with CuPy instead of NumPy; one case at a
            time. None: on the host.
        kernels: folder of kernels that CuPy compiled ahead; see `device_kernels`.
    """

    timeout_s: float = REFERENCE_S
    memory_bytes: int = 48 << 30
    children: int = 0
    device: int | None = None
    kernels: Path | None = None
    kept: KeptChildren = field(default_factory=KeptChildren, compare=False, repr=False)
    _running: HaltedChildren = field(default_factory=HaltedChildren, compare=False, repr=False)
    _on_device: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def halt(self) -> None:
        """See `ReferencePort.halt`."""
        self._running.halt()

    def go_on(self) -> None:
        """See `ReferencePort.go_on`."""
        self._running.go_on()

    def warm(self) -> None:
        """Start the process from which its children are forked, so that the first one need not wait."""
        start_server(self._environment, self._preloads)

    def numpy(
        self, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        """Compute a case as `numpy_many` does; raises the error that `numpy_many` returns as an item."""
        (found,) = self.numpy_many(source, function, [(plan, dims)])
        if isinstance(found, InvalidInput):
            raise found
        return found

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`."""
        if not cases:
            return []
        if self.device is not None:
            with self._on_device:
                return self._all(source, function, cases)
        return self._all(source, function, cases)

    def _all(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        beside = self._at_once([plan for plan, _ in cases])
        line = SimpleQueue[tuple[int, ReferenceCase]]()
        for case in enumerate(cases):
            line.put(case)
        found: dict[int, Mapping[str, Array] | InvalidInput] = {}
        with ThreadPoolExecutor(beside) as pool:
            for done in [pool.submit(self._work_off, source, function, line) for _ in range(beside)]:
                found |= done.result()
        if beside > 1:
            # A case for which the others left no memory may succeed alone.
            for number, outcome in found.items():
                if isinstance(outcome, InvalidInput) and not isinstance(outcome, _TooLate):
                    line.put((number, cases[number]))
            found |= self._work_off(source, function, line)
        return [found[number] for number in range(len(cases))]

    def _at_once(self, plans: Sequence[WorkloadPlan]) -> int:
        """Number of concurrent children: limited by cores, by the size of the work and by memory."""
        if self.device is not None:
            return 1
        elements = [sum(b.elements for b in plan.buffers) for plan in plans]
        room = memory_limit(self.memory_bytes) // max(1, ROOM * WIDE_BYTES * max(elements))
        work = 1 + sum(elements) // ELEMENTS_EACH
        return max(1, min(self.children or usable_cores(), len(plans), work, room))

    def _work_off(
        self, source: str, function: str, line: "SimpleQueue[tuple[int, ReferenceCase]]"
    ) -> dict[int, Mapping[str, Array] | InvalidInput]:
        """Take cases until none is left; results by case number."""
        found: dict[int, Mapping[str, Array] | InvalidInput] = {}
        child: ChildProcess | None = None
        try:
            while True:
                try:
                    number, (plan, dims) = line.get_nowait()
                except Empty:
                    return found
                self._running.wait_to_go()
                if child is None:
                    child = self.kept.take(source) or self._started()
                try:
                    with self._running.running(child):
                        found[number] = self._ask(child, source, function, plan, dims)
                except InvalidInput as exc:
                    found[number] = exc
                    child.kill()
                    child = None
        except BaseException:
            if child is not None:
                child.kill()
                child = None
            raise
        finally:
            if child is not None:
                self.kept.give_back(source, child)

    def _started(self) -> ChildProcess:
        kernels = None if self.kernels is None else str(self.kernels)
        return ChildProcess(
            "warpsmith.sandbox.children.reference_child",
            {"memory_bytes": self.memory_bytes, "device": self.device, "kernels": kernels},
            self._environment,
            preload=self._preloads,
        )

    def compile_ahead(self) -> threading.Thread | None:
        """Have the usual kernels compiled in the background, if they are to be kept and are not there yet."""
        if self.kernels is None or device_kernels.is_complete(self.kernels):
            return None
        thread = threading.Thread(target=self._compile_ahead, args=(self.kernels,), daemon=True)
        thread.start()
        return thread

    def _compile_ahead(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        told = {"device": self.device, "folder": str(folder), "parts": PARTS}
        children = [
            ChildProcess(
                device_kernels.__name__, told | {"part": n}, self._environment, preload=self._preloads
            )
            for n in range(PARTS)
        ]
        deadline = time.monotonic() + AHEAD_S
        for child in children:
            child.wait(max(0.0, deadline - time.monotonic()))
            child.kill()

    @property
    def _environment(self) -> dict[str, str]:
        return child_environment(None if self.device is None else Backend.CUDA)

    @property
    def _preloads(self) -> tuple[str, ...]:
        return (*preloads(None), *(() if self.device is None else (MODULE,)))

    def _ask(
        self, child: ChildProcess, source: str, function: str, plan: WorkloadPlan, dims: Mapping[str, int]
    ) -> Mapping[str, Array]:
        try:
            deadline = time.monotonic() + self.timeout_s
            request = {"plan": plan_to_json(plan), "function": function, "dims": dict(dims)}
            child.channel.send(request, [source.encode()], deadline)
            most = sum(b.elements * wanted_dtype(b.dtype).itemsize for b in plan.mutated)
            reply, blobs = child.channel.receive(deadline, most)
        except ChildDied as exc:
            died = child.explain(exc)
            if died.cause == "timeout":
                raise _TooLate("reference", f"the NumPy function ran past {self.timeout_s:g} s") from exc
            raise InvalidInput("reference", f"the NumPy function {died}") from exc
        if "error" in reply:
            raise InvalidInput("reference", str(reply["error"])[:1500])
        try:
            outputs: dict[str, Array] = {}
            for buffer, name, blob in zip(plan.mutated, reply["names"], blobs, strict=True):
                outputs[buffer.name] = np.frombuffer(blob, wanted_dtype(buffer.dtype))
                if name != buffer.name or outputs[buffer.name].size != buffer.elements:
                    raise ValueError(name)
        except (LookupError, TypeError, ValueError) as exc:
            words = "the reference process sent something that is not a result"
            raise InvalidInput("reference", words) from exc
        return outputs


def device_references(
    device: DeviceInfo,
    kept: KeptChildren,
    memory_bytes: int = ReferenceRunner.memory_bytes,
    folder: Path | None = None,
) -> ReferenceRunner | None:
    """Runner that computes references on a device; None if it is no CUDA device, or CuPy is not installed.

    Args:
        memory_bytes: limit on the host memory of its child.
        folder: where kernels that CuPy compiled ahead are kept, for each version and architecture apart.
    """
    version = _cupy_version() if device.backend.language.has_nvidia_tools else ""
    if not version:
        return None
    kernels = None if folder is None else folder / f"{version}-{device.name}".replace("/", "-")
    return ReferenceRunner(
        DEVICE_TIMEOUT_S, memory_bytes, children=1, device=device.index, kernels=kernels, kept=kept
    )


def _cupy_version() -> str:
    """The version of CuPy, without importing it; empty if it is not installed."""
    if importlib.util.find_spec(MODULE) is None:
        return ""
    names = importlib.metadata.packages_distributions().get(MODULE, ())
    return next((f"{n}-{importlib.metadata.version(n)}" for n in names), "unknown")
