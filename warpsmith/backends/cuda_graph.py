"""CUDA graphs through cuda-python, since PyCUDA has no interface for them: capture and replay.

Single launches from Python cost 8 µs of host time each; launches inside a graph cost device time only.
"""

from collections.abc import Callable, Sequence
from typing import Any

from warpsmith.backends.base import DeviceFault


class GraphTimer:
    """Captures launches on a PyCUDA stream and times replays between two events."""

    def __init__(self, driver: Any, stream: Any) -> None:
        from cuda.bindings import driver as bindings

        self._cu = bindings
        self._stream = stream
        self._handle = bindings.CUstream(int(stream.handle))
        self._start = driver.Event()
        self._end = driver.Event()

    def capture(self, launches: Sequence[Callable[[], None]]) -> Any:
        """An executable graph of the launches, in order."""
        cu = self._cu
        mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._must(cu.cuStreamBeginCapture(self._handle, mode))
        try:
            for launch in launches:
                launch()
        except BaseException:
            cu.cuStreamEndCapture(self._handle)
            raise
        (graph,) = self._must(cu.cuStreamEndCapture(self._handle))
        try:
            (executable,) = self._must(cu.cuGraphInstantiate(graph, 0))
        finally:
            cu.cuGraphDestroy(graph)
        self._must(cu.cuGraphUpload(executable, self._handle))
        return executable

    def replay_us(self, graph: Any) -> float:
        """Device time of one replay, in microseconds."""
        self._start.record(self._stream)
        self._must(self._cu.cuGraphLaunch(graph, self._handle))
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._start.time_till(self._end)) * 1000.0

    def destroy(self, graph: Any) -> None:
        """Free an executable graph."""
        self._cu.cuGraphExecDestroy(graph)

    def _must(self, result: Any) -> tuple[Any, ...]:
        status, *values = result
        if status != self._cu.CUresult.CUDA_SUCCESS:
            raise DeviceFault(f"CUDA graph: {status}")
        return tuple(values)
