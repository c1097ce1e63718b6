"""A CUDA device through PyCUDA: memory, launches, and timing by graph replay. Runs in device children."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from warpsmith.backends.base import (
    Bound,
    DeviceFault,
    LaunchRefused,
    Memory,
    Program,
    Repeats,
    Watch,
    launches_in_place,
    launches_of,
)
from warpsmith.backends.cuda_extended_launch import DriverRefusal, ExtendedLaunch
from warpsmith.backends.cuda_graph import GraphTimer
from warpsmith.backends.cuda_memory import Slabs
from warpsmith.backends.cuda_program import CudaFunction, CudaProgram
from warpsmith.backends.cuda_variants import CudaVariants
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.launch_size import LaunchSize
from warpsmith.domain.plan import BufferPlan, Compiled
from warpsmith.domain.variant_binaries import is_joined, split

DEFAULT_SHARED_BYTES = 48 * 1024
WARM_UP_S = 0.15
"""Seconds of launches before the first timing of a process: an idle H200 clocks at 345 MHz."""
SAMPLE_US = 200.0
"""Least length of a sample in µs, long against the overhead of the events around it."""
MOST_LAUNCHES = 64
"""Limit on the launches per sample."""
TRIES = 3
"""Single launches that estimate the time of one; the first is slow in the host."""
LONG_TRY_US = 10_000.0
"""Length in µs from which one launch is estimate enough: the host's share is negligible."""
LONG_REPLAY_US = 500.0
"""Length in µs from which one replay of a graph is warm-up enough."""
LONG_SAMPLE_US = 2000.0
"""Length in µs from which a sample gains nothing from further launches."""
Loaded = CudaProgram | CudaVariants
_REFUSED = ("invalid", "too large", "out of resources", "no kernel image", "not supported", "not found")


class CudaDevice:
    """Implements `backends.base.Device` in the current process, with a context of its own."""

    apart = False

    def __init__(self, info: DeviceInfo) -> None:
        from pycuda import driver

        self.info = info
        self._driver = driver
        self._device = driver.Device(info.index)
        self._context = self._device.make_context()
        self._stream = driver.Stream()
        self._timer = GraphTimer(driver, self._stream)
        self._warm = False
        self._slabs = Slabs(driver)

    def allocate(self, size_bytes: int) -> Memory:
        """See `Device.allocate`."""
        return self._slabs.allocate(size_bytes, apart=self.apart)

    def allocate_image(self, plan: BufferPlan) -> Memory:
        """See `Device.allocate_image`."""
        raise LaunchRefused(f"{plan.name}: textures cannot be posted; use a buffer")

    def load(self, compiled: Compiled) -> Program:
        """See `Device.load`."""
        try:
            if is_joined(compiled.binary):
                return CudaVariants(self._driver, split(compiled.binary))
            module = self._driver.module_from_buffer(compiled.binary)
            functions = [CudaFunction(module.get_function(entry)) for entry in compiled.entries]
            return CudaProgram(self._driver, module, functions, compiled.globals, compiled.binary)
        except (self._driver.Error, ValueError) as exc:
            raise self._error(exc, "the binary was refused") from exc

    def launch(self, program: Program, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """See `Device.launch`."""
        assert isinstance(program, CudaProgram | CudaVariants)
        self._prepare(program, arguments, size)
        self._enqueue(program, arguments, size)
        self._finish()

    def time(
        self,
        program: Program,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        repeats: Repeats,
        watch: Watch,
    ) -> tuple[list[float], int]:
        """See `Device.time`: replays of a captured graph between two events; it has whole sequences."""
        assert isinstance(program, CudaProgram | CudaVariants)
        self._prepare(program, argument_sets[-1], size)
        once_us, sets, launches = repeats.known_us, len(argument_sets), repeats.launches or 1
        if not once_us:
            watch.before(None, 1)
            self._enqueue(program, argument_sets[-1], size)
            self._finish()
            if repeats.in_place or not repeats.launches:
                launches, once_us = self._choose_launches(program, argument_sets, size, watch)
        if repeats.in_place:
            launches = launches_in_place(sets, once_us)
        count = repeats.samples(once_us * max(launches, launches_of_graph(sets, launches, once_us)))
        graphs, warming, launches = self._capture(program, argument_sets, size, launches, once_us, count)
        times: list[float] = []
        try:
            if not repeats.known_us:
                self._warm_up(warming, lambda: watch.before(None, launches), is_warm=repeats.is_warm)
            for sample in range(count):
                watch.before(sample, launches)
                times.append(self._timer.replay_us(graphs[sample % len(graphs)]) / launches)
                watch.after(sample)
                if repeats.stop(times):
                    break
        except self._driver.Error as exc:
            raise DeviceFault(f"a timed launch faulted: {exc}") from exc
        finally:
            for graph in graphs if warming is graphs else [*graphs, *warming]:
                self._timer.destroy(graph)
        return times, launches

    def close(self) -> None:
        """See `Device.close`."""
        self._context.pop()

    def _choose_launches(
        self,
        program: Loaded,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        watch: Watch,
    ) -> tuple[int, float]:
        """Launches per sample, so that it is long against the events; and the time of one launch, µs."""
        start, end = self._driver.Event(), self._driver.Event()
        once_us: list[float] = []
        while len(once_us) < TRIES and (not once_us or once_us[-1] < LONG_TRY_US):
            watch.before(None, 1)
            start.record(self._stream)
            # The last set of the walk: the first sample must not find the result for its own inputs.
            self._enqueue(program, argument_sets[-1], size)
            end.record(self._stream)
            self._finish()
            once_us.append(start.time_till(end) * 1000.0)
        return int(max(1, min(MOST_LAUNCHES, SAMPLE_US / max(1.0, min(once_us))))), min(once_us)

    def _capture(
        self,
        program: Loaded,
        argument_sets: Sequence[Sequence[Bound]],
        size: LaunchSize,
        launches: int,
        once_us: float,
        samples: int,
    ) -> tuple[list[Any], list[Any], int]:
        """Graphs to replay in turn, graphs that warm up, and the number of launches of each.

        A graph starts anew with every replay, so together the graphs end where the walk through the sets
        ends. If the samples end before that, the last graph warms up: a launch must not find the result for
        its own inputs, and it would if the same launch had warmed up.
        """
        count = len(argument_sets)
        run = [partial(self._enqueue, program, arguments, size) for arguments in argument_sets]
        length = launches_of_graph(count, launches, once_us)
        if length == count:
            turns = max(1, round(launches / count))
            every = [self._timer.capture(turns * run)]
            return every, every, turns * count
        starts = range(0, count, length)
        whole = samples >= len(starts)
        graphs: list[Any] = []
        try:
            for start in starts if whole else (*starts[:samples], starts[-1]):
                graphs.append(self._timer.capture(run[start : start + length]))
        except BaseException:
            for graph in graphs:
                self._timer.destroy(graph)
            raise
        return (graphs, graphs, length) if whole else (graphs[:-1], graphs[-1:], length)

    def _warm_up(self, graphs: Sequence[Any], restore: Callable[[], None], *, is_warm: bool) -> None:
        """Warm up with two replays, or one of a long graph. The first timing of a process replays until the
        clocks are up, unless they are."""
        if self._replay_all(graphs, restore) < LONG_REPLAY_US and len(graphs) == 1:
            self._replay_all(graphs, restore)
        if self._warm or is_warm:
            self._warm = True
            return
        until = time.monotonic() + WARM_UP_S
        while time.monotonic() < until:
            self._replay_all(graphs, restore)
        self._warm = True

    def _replay_all(self, graphs: Sequence[Any], restore: Callable[[], None]) -> float:
        restore()
        return sum(self._timer.replay_us(graph) for graph in graphs)

    def _prepare(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        """Do what cannot be done within a capture: allocate scratch, and find the handle of a function whose
        launch has attributes."""
        if not isinstance(program, CudaVariants) and not any(step.has_attributes for step in size.steps):
            return
        for n, every, one in launches_of(arguments, size):
            function, taken, step = program.launch_of(n, every, one)
            if not step.has_attributes or function.extended is not None:
                continue
            launch = partial(
                self._enqueue_one, function, taken, replace(step, cluster=(1, 1, 1), cooperative=False)
            )
            function.extended = ExtendedLaunch(self._timer, self._timer.function_of(launch))

    def _enqueue(self, program: Loaded, arguments: Sequence[Bound], size: LaunchSize) -> None:
        for n, taken, step in launches_of(arguments, size):
            self._enqueue_one(*program.launch_of(n, taken, step))

    def _enqueue_one(self, function: CudaFunction, arguments: Sequence[Bound], size: LaunchSize) -> None:
        try:
            if size.shared_bytes > max(DEFAULT_SHARED_BYTES, function.shared_bytes):
                attribute = self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                function.function.set_attribute(attribute, size.shared_bytes)
                function.shared_bytes = size.shared_bytes
            if size.has_attributes and function.extended is not None:
                function.extended.enqueue(size, arguments)
                return
            parameters = function.parameters(arguments)
            function.function.prepared_async_call(
                size.grid, size.block, self._stream, parameters, shared_size=size.shared_bytes
            )
        except (self._driver.Error, DriverRefusal) as exc:
            raise self._error(exc, "the launch was refused") from exc

    def _finish(self) -> None:
        try:
            self._stream.synchronize()
        except self._driver.Error as exc:
            raise DeviceFault(f"the kernel faulted: {exc}") from exc

    def _error(self, exc: Exception, words: str) -> Exception:
        text = str(exc)
        words_of_it = text.lower().replace("_", " ")
        if any(word in words_of_it for word in _REFUSED) and "address" not in words_of_it:
            return LaunchRefused(f"{words}: {text[:500]}")
        return DeviceFault(f"{words}: {text[:500]}")


def launches_of_graph(count: int, launches: int, once_us: float) -> int:
    """Launches of the walk that one graph has: a divisor of `count`, or all.

    Small inputs have many sets, and walking through all of them in every sample takes long for slow launches.

    Args:
        count: launches of the walk.
        launches: least number per sample, approximately.
        once_us: time of one launch, µs; 0 if unknown.
    """
    if count <= 2 or count % 2 or 4 * launches >= 3 * count:
        return count
    length = count // 2
    while length % 2 == 0 and length // 2 >= launches and length * once_us > LONG_SAMPLE_US:
        length //= 2
    return length
