"""HIP graphs: capture and replay of launches. Not run on AMD hardware."""

from collections.abc import Callable, Sequence
from typing import Any

from warpsmith.extensions.hip.calls import must

_GRAPH = "HIP graph"
_TIMED = "a timed launch faulted"


class HipGraphTimer:
    """Captures launches on a stream and times replays between two events.

    Implements `graph_timed_device.GraphReplays`.
    """

    def __init__(self, hip: Any, stream: Any) -> None:
        self._hip = hip
        self._stream = stream
        (self._start,) = must(hip.hipEventCreate(), "no event")
        (self._end,) = must(hip.hipEventCreate(), "no event")

    def capture(self, launches: Sequence[Callable[[], None]]) -> Any:
        """See `GraphReplays.capture`."""
        hip = self._hip
        mode = hip.hipStreamCaptureMode.hipStreamCaptureModeThreadLocal
        must(hip.hipStreamBeginCapture(self._stream, mode), _GRAPH)
        try:
            for launch in launches:
                launch()
        except BaseException:
            hip.hipStreamEndCapture(self._stream)
            raise
        (graph,) = must(hip.hipStreamEndCapture(self._stream), _GRAPH)
        try:
            (executable,) = must(hip.hipGraphInstantiateWithFlags(graph, 0), _GRAPH)
        finally:
            hip.hipGraphDestroy(graph)
        must(hip.hipGraphUpload(executable, self._stream), _GRAPH)
        return executable

    def replay_us(self, graph: Any) -> float:
        """See `GraphReplays.replay_us`."""
        return self.once_us(lambda: must(self._hip.hipGraphLaunch(graph, self._stream), _TIMED))

    def once_us(self, launch: Callable[[], object]) -> float:
        """See `GraphReplays.once_us`."""
        hip = self._hip
        must(hip.hipEventRecord(self._start, self._stream), _TIMED)
        launch()
        must(hip.hipEventRecord(self._end, self._stream), _TIMED)
        must(hip.hipEventSynchronize(self._end), _TIMED)
        (milliseconds,) = must(hip.hipEventElapsedTime(self._start, self._end), _TIMED)
        return float(milliseconds) * 1000.0

    def destroy(self, graph: Any) -> None:
        """See `GraphReplays.destroy`."""
        self._hip.hipGraphExecDestroy(graph)

    def close(self) -> None:
        """Give the events back."""
        self._hip.hipEventDestroy(self._start)
        self._hip.hipEventDestroy(self._end)
