"""CUDA graphs through cuda-python, since PyCUDA has no interface for them: capture and replay."""

from collections.abc import Callable, Sequence
from typing import Any

from warpsmith.backends.base import DeviceFault


class GraphTimer:
    """Captures launches on a PyCUDA stream and times replays between two events.

    Implements `graph_timed_device.GraphReplays`.
    """

    def __init__(self, driver: Any, stream: Any) -> None:
        from cuda.bindings import driver as bindings

        self.bindings = bindings
        self._driver = driver
        self._events_on = stream
        self.stream = bindings.CUstream(int(stream.handle))
        self._start = driver.Event()
        self._end = driver.Event()

    def capture(self, launches: Sequence[Callable[[], None]]) -> Any:
        """An executable graph of the launches, in order."""
        cu = self.bindings
        graph = self._captured(launches)
        try:
            (executable,) = self._must(cu.cuGraphInstantiate(graph, 0))
        finally:
            cu.cuGraphDestroy(graph)
        self._must(cu.cuGraphUpload(executable, self.stream))
        return executable

    def _captured(self, launches: Sequence[Callable[[], None]]) -> Any:
        cu = self.bindings
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._must(cu.cuStreamBeginCapture(self.stream, mode))
        try:
            for launch in launches:
                launch()
        except BaseException:
            cu.cuStreamEndCapture(self.stream)
            raise
        (graph,) = self._must(cu.cuStreamEndCapture(self.stream))
        return graph

    def replay_us(self, graph: Any) -> float:
        """Device time of one replay, in microseconds. Lines that launches asked the L2 cache to keep are as
        any others when it begins."""
        # Without persisting lines it does nothing, and where a device has none it says so.
        self.bindings.cuCtxResetPersistingL2Cache()
        return self.once_us(lambda: self._must(self.bindings.cuGraphLaunch(graph, self.stream)))

    def once_us(self, launch: Callable[[], object]) -> float:
        """Device time between two events around a launch, in microseconds."""
        try:
            self._start.record(self._events_on)
            launch()
            self._end.record(self._events_on)
            self._end.synchronize()
            return float(self._start.time_till(self._end)) * 1000.0
        except self._driver.Error as exc:
            raise DeviceFault(f"a timed launch faulted: {exc}") from exc

    def destroy(self, graph: Any) -> None:
        """Free an executable graph."""
        self.bindings.cuGraphExecDestroy(graph)

    def function_of(self, launch: Callable[[], None]) -> Any:
        """The driver's handle of the function that `launch` launches; PyCUDA does not show it.

        The launch is captured, and nothing runs.
        """
        cu = self.bindings
        graph = self._captured([launch])
        try:
            _, count = self._must(cu.cuGraphGetNodes(graph, 0))
            nodes, _ = self._must(cu.cuGraphGetNodes(graph, count))
            (parameters,) = self._must(cu.cuGraphKernelNodeGetParams(nodes[0]))
            # A copy: the handle that the node's parameters give lies in their memory, and ends with them.
            return cu.CUfunction(int(parameters.func))
        finally:
            cu.cuGraphDestroy(graph)

    def _must(self, result: Any) -> tuple[Any, ...]:
        """The values of a driver call.

        Raises:
            DeviceFault: the call failed; the message has the driver's word.
        """
        status, *values = result
        if status != self.bindings.CUresult.CUDA_SUCCESS:
            raise DeviceFault(f"CUDA graph: {status}")
        return tuple(values)
