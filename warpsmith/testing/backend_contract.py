"""Contract of every `BackendModule`, and of the `Device`, `Memory` and `Program` that it gives.

A module of tests offers three fixtures and inherits from `BackendContract`. All runs in the process of the
tests, so nothing here faults; `device_contract` has what does.

- `module`: the `BackendModule`.
- `opened`: a `Device` of it, opened once for all tests; the fixture closes it.
- `asked`: a function from a `Behaviour` to a `CompileRequest` for that device.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from warpsmith.backends.base import (
    BackendModule,
    Bound,
    CompileRequest,
    Device,
    LaunchRefused,
    Memory,
    Program,
    Repeats,
)
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.testing.kernels import ELEMENTS, Behaviour, size

Asked = Callable[[Behaviour], CompileRequest]
BYTES = 4096


class CountingWatch:
    """Notes every call of a `Watch`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int | None]] = []

    def before(self, sample: int | None, launches: int) -> None:
        """See `Watch.before`."""
        assert launches >= 1
        self.calls.append(("before", sample))

    def after(self, sample: int) -> None:
        """See `Watch.after`."""
        self.calls.append(("after", sample))


class LaunchedKernel:
    """The right kernel on memory of its own."""

    def __init__(self, module: BackendModule, device: Device, request: CompileRequest) -> None:
        compiled = module.compile_source(request)
        assert isinstance(compiled, Compiled), compiled
        self.compiled = compiled
        self.program: Program = device.load(compiled)
        self.x: Memory = device.allocate(4 * ELEMENTS)
        self.y: Memory = device.allocate(4 * ELEMENTS)
        self.values = np.arange(ELEMENTS, dtype=np.float32)
        self.x.write(self.values)
        self.y.fill(b"\x00", 0, 4 * ELEMENTS)
        self.bound: Sequence[Bound] = ((self.x, 0), (self.y, 0), np.int32(ELEMENTS))

    def assert_doubled(self) -> None:
        """Assert that y holds twice the values of x."""
        got = np.frombuffer(self.y.read(0, 4 * ELEMENTS), np.float32)
        np.testing.assert_array_equal(got, 2 * self.values)

    def free(self) -> None:
        """Give everything back."""
        self.program.unload()
        self.x.free()
        self.y.free()


class BackendContract:
    """For every back end."""

    def test_devices_are_found_and_found_again(self, module: BackendModule, opened: Device) -> None:
        found = module.probe()
        assert found
        assert [d.index for d in found] == list(range(len(found)))
        assert len({d.uid for d in found}) == len(found)
        assert [d.uid for d in module.probe()] == [d.uid for d in found]
        assert opened.info.uid in {d.uid for d in found}
        for device in found:
            assert device.limits.max_threads_per_block >= 1
            assert device.limits.multiprocessors >= 1

    def test_a_bad_source_is_a_value(self, module: BackendModule, asked: Asked) -> None:
        made = module.compile_source(asked(Behaviour.BROKEN))
        assert isinstance(made, Rejected)
        assert made.stage is Stage.COMPILE

    def test_memory_gives_back_what_was_written(self, opened: Device) -> None:
        memory = opened.allocate(BYTES)
        assert memory.size_bytes == BYTES
        data = np.random.default_rng(1).integers(0, 256, BYTES, np.uint8)
        memory.write(data)
        assert memory.read(0, BYTES) == data.tobytes()
        memory.write(data[:13], 1000)
        assert memory.read(1000, 13) == data[:13].tobytes()
        assert memory.read(1013, 100) == data[1013:1113].tobytes()
        memory.free()

    @pytest.mark.parametrize("pattern", [b"\x5a", b"\x5a\xa5", b"\x01\x02\x03\x04"], ids=len)
    def test_a_pattern_fills_its_place_and_nothing_else(self, opened: Device, pattern: bytes) -> None:
        memory = opened.allocate(BYTES)
        memory.write(np.zeros(BYTES, np.uint8))
        memory.fill(pattern, 64, 128)
        wanted = bytes(64) + pattern * (128 // len(pattern)) + bytes(BYTES - 192)
        assert memory.read(0, BYTES) == wanted
        memory.free()

    def test_a_copy_keeps_its_offset(self, opened: Device) -> None:
        source, target = opened.allocate(BYTES), opened.allocate(BYTES)
        data = np.random.default_rng(2).integers(0, 256, BYTES, np.uint8)
        source.write(data)
        target.write(np.zeros(BYTES, np.uint8))
        target.copy_from(source, 100, 256)
        assert target.read(0, BYTES) == bytes(256) + data[256:356].tobytes() + bytes(BYTES - 356)
        source.free()
        target.free()

    def test_pieces_of_another_memory_are_gathered(self, opened: Device) -> None:
        source, target = opened.allocate(BYTES), opened.allocate(BYTES)
        data = np.random.default_rng(3).integers(0, 256, BYTES, np.uint8)
        source.write(data)
        target.write(np.zeros(BYTES, np.uint8))
        target.gather(source, [64, 0, 128], 32, slice(16, 100))
        wanted = np.concatenate([data[64:96], data[:32], data[128:148]]).tobytes()
        assert target.read(0, BYTES) == bytes(16) + wanted + bytes(BYTES - 100)
        source.free()
        target.free()

    def test_a_launch_computes_and_remembers_nothing(
        self, module: BackendModule, opened: Device, asked: Asked
    ) -> None:
        made = LaunchedKernel(module, opened, asked(Behaviour.RIGHT))
        opened.launch(made.program, made.bound, size())
        made.assert_doubled()
        assert made.program.changed_globals() == []
        made.free()

    def test_a_refused_launch_leaves_the_device_well(
        self, module: BackendModule, opened: Device, asked: Asked
    ) -> None:
        made = LaunchedKernel(module, opened, asked(Behaviour.RIGHT))
        with pytest.raises(LaunchRefused):
            opened.launch(made.program, made.bound, LaunchSize((1, 1, 1), (1 << 20, 1, 1)))
        opened.launch(made.program, made.bound, size())
        made.assert_doubled()
        with pytest.raises(LaunchRefused):
            opened.load(Compiled(made.compiled.binary, "no_such_entry", made.compiled.facts))
        made.free()

    def test_every_sample_is_watched_and_the_count_is_asked_for_once(
        self, module: BackendModule, opened: Device, asked: Asked
    ) -> None:
        made, watch, counts = LaunchedKernel(module, opened, asked(Behaviour.RIGHT)), CountingWatch(), []

        def samples(sample_us: float) -> int:
            assert not [sample for _, sample in watch.calls if sample is not None]
            counts.append(sample_us)
            return 5

        sets = [made.bound]
        repeats = Repeats(samples, 0, lambda seen: False)
        times, launches = opened.time(made.program, sets, size(), repeats, watch)
        assert (len(times), len(counts)) == (5, 1)
        assert launches >= 1
        assert all(t > 0 for t in times)
        watched = [call for call in watch.calls if call[1] is not None]
        assert watched == [(when, sample) for sample in range(5) for when in ("before", "after")]
        made.assert_doubled()
        made.free()

    def test_a_launch_of_known_time_is_timed_without_another(
        self, module: BackendModule, opened: Device, asked: Asked
    ) -> None:
        made, watch, lengths = LaunchedKernel(module, opened, asked(Behaviour.RIGHT)), CountingWatch(), []

        def samples(sample_us: float) -> int:
            lengths.append(sample_us)
            return 2

        repeats = Repeats(samples, 0, lambda seen: False, known_us=1e6)
        times, launches = opened.time(made.program, [made.bound], size(), repeats, watch)
        assert (len(times), launches, lengths) == (2, 1, [1e6])
        assert watch.calls[0] == ("before", 0)
        made.assert_doubled()
        made.free()

    def test_timing_stops_where_it_is_told(self, module: BackendModule, opened: Device, asked: Asked) -> None:
        made = LaunchedKernel(module, opened, asked(Behaviour.RIGHT))
        repeats = Repeats(lambda _: 50, 0, lambda seen: len(seen) == 4)
        times, _ = opened.time(made.program, [made.bound], size(), repeats, CountingWatch())
        assert len(times) == 4
        made.free()
