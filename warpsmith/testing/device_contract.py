"""Contract of every `DevicePort` and `DeviceOpener`.

A module of tests offers two fixtures and inherits from `DeviceContract`, or from `KernelDeviceContract`
where kernels really run:

- `opener`: a `DeviceOpener` whose children wait some seconds for a launch.
- `build`: a function from a `Behaviour` to the `Compiled` that has it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from warpsmith.domain.arguments.argument import Role
from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.jobs.plan import Compiled, Family, TimedCheck, TimingPlan
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.testing.kernels import ELEMENTS, Behaviour, doubled, plan, size
from warpsmith.tuning.ports import DeviceOpener, DevicePort
from warpsmith.verify.inputs import draw_inputs
from warpsmith.verify.run_report import RunReport

Build = Callable[[Behaviour], Compiled]
GIVE_UP_SAMPLES = 3
OTHER_VARIANT = 1000
"""Variant of the inputs that a checked timed launch may get in place of its own."""
TOO_WIDE = LaunchSize((1, 1, 1), (1 << 20, 1, 1))


def run_once(device: DevicePort, compiled: Compiled) -> RunReport:
    """Report of a checked launch on the usual workload."""
    workload = plan()
    device.prepare(workload)
    return device.run(device.load(compiled), workload.key, size())


class DeviceContract:
    """For every device, a fake one included."""

    @pytest.fixture
    def device(self, opener: DeviceOpener) -> Iterator[DevicePort]:
        """A fresh child, closed in the end."""
        opened = opener.open()
        yield opened
        opened.close()

    def test_an_opened_device_is_the_one_that_was_asked_for(
        self, opener: DeviceOpener, device: DevicePort
    ) -> None:
        assert device.info == opener.info

    def test_a_right_kernel_writes_what_is_expected(self, device: DevicePort, build: Build) -> None:
        report = run_once(device, build(Behaviour.RIGHT))
        np.testing.assert_array_equal(report.outputs["y"], doubled(plan()))
        assert (report.guard_violations, report.changed_inputs) == ((), ())
        assert report.repeated is None

    def test_equal_launches_bring_back_equal_bytes(
        self, opener: DeviceOpener, device: DevicePort, build: Build
    ) -> None:
        """In one child and in the next."""
        workload, compiled = plan(), build(Behaviour.RIGHT)
        device.prepare(workload)
        handle = device.load(compiled)
        seen = [device.run(handle, workload.key, size()).outputs["y"].tobytes() for _ in range(2)]
        device.close()
        other = opener.open()
        try:
            seen.append(run_once(other, compiled).outputs["y"].tobytes())
        finally:
            other.close()
        assert len(set(seen)) == 1

    def test_ranges_bring_back_what_the_whole_output_has_there(
        self, device: DevicePort, build: Build
    ) -> None:
        workload = plan()
        device.prepare(workload)
        handle = device.load(build(Behaviour.RIGHT))
        spans = [(0, 3), (500, 501), (ELEMENTS - 1, ELEMENTS)]
        whole = device.run(handle, workload.key, size()).outputs["y"]
        part = device.run(handle, workload.key, size(), {"y": spans}).outputs["y"]
        np.testing.assert_array_equal(part, np.concatenate([whole[a:b] for a, b in spans]))

    def test_a_repeated_launch_brings_back_both_results(self, device: DevicePort, build: Build) -> None:
        workload = plan()
        device.prepare(workload)
        report = device.run(device.load(build(Behaviour.RIGHT)), workload.key, size(), repeat=True)
        assert report.repeated is not None
        np.testing.assert_array_equal(report.repeated["y"], report.outputs["y"])

    def test_a_workload_that_is_prepared_again_replaces_the_earlier_one(
        self, device: DevicePort, build: Build
    ) -> None:
        handle = device.load(build(Behaviour.RIGHT))
        for seed in (5, 6):
            workload = plan(seed=seed)
            device.prepare(workload)
            report = device.run(handle, workload.key, size())
            np.testing.assert_array_equal(report.outputs["y"], doubled(workload))

    def test_workloads_and_binaries_do_not_touch_each_other(self, device: DevicePort, build: Build) -> None:
        kept, dropped = plan(name="kept", seed=1), plan(65, name="dropped", seed=2)
        device.prepare(kept)
        device.prepare(dropped)
        first, second = (device.load(build(Behaviour.RIGHT)) for _ in range(2))
        report = device.run(first, dropped.key, size(65))
        np.testing.assert_array_equal(report.outputs["y"], doubled(dropped))
        device.release(dropped.key)
        device.unload(first)
        report = device.run(second, kept.key, size())
        np.testing.assert_array_equal(report.outputs["y"], doubled(kept))
        device.prepare(dropped)
        report = device.run(second, dropped.key, size(65))
        np.testing.assert_array_equal(report.outputs["y"], doubled(dropped))

    def test_a_write_behind_an_output_is_reported(self, device: DevicePort, build: Build) -> None:
        report = run_once(device, build(Behaviour.BEHIND_OUTPUT))
        assert report.guard_violations == ("y",)
        assert report.changed_inputs == ()

    def test_a_changed_input_is_reported(self, device: DevicePort, build: Build) -> None:
        report = run_once(device, build(Behaviour.CHANGES_INPUT))
        assert report.changed_inputs == ("x",)
        assert report.guard_violations == ()

    def test_a_kernel_that_writes_nothing_leaves_no_answer(self, device: DevicePort, build: Build) -> None:
        """Not even that of a right kernel before it, nor the same twice."""
        workload = plan()
        device.prepare(workload)
        right, idle = device.load(build(Behaviour.RIGHT)), device.load(build(Behaviour.IDLE))
        seen = set()
        for _ in range(3):
            good = device.run(right, workload.key, size()).outputs["y"]
            left = device.run(idle, workload.key, size()).outputs["y"]
            # One element in 2^32 may look right by chance; all may not.
            assert np.count_nonzero(left == good) <= 1
            seen.add(left.tobytes())
        assert len(seen) == 3

    @pytest.mark.parametrize("cache", list(CacheState))
    def test_timing_gives_as_many_positive_samples_as_planned(
        self, device: DevicePort, build: Build, cache: CacheState
    ) -> None:
        workload = plan()
        device.prepare(workload)
        handle = device.load(build(Behaviour.RIGHT))
        timed = device.time(handle, workload.key, size(), TimingPlan(cache, samples=5)).samples
        assert timed.complete
        assert len(timed.samples_us) == 5
        assert all(0 < sample < 1e6 for sample in timed.samples_us)
        assert timed.launches >= 1
        # Timing leaves nothing behind that a checked launch would see.
        report = device.run(handle, workload.key, size())
        np.testing.assert_array_equal(report.outputs["y"], doubled(workload))

    def test_timing_gives_up_after_three_samples_above_the_limit(
        self, device: DevicePort, build: Build
    ) -> None:
        workload = plan()
        device.prepare(workload)
        handle = device.load(build(Behaviour.RIGHT))
        asked = TimingPlan(CacheState.COLD, samples=50, give_up_above_us=1e-6)
        timed = device.time(handle, workload.key, size(), asked).samples
        assert (timed.complete, len(timed.samples_us)) == (False, GIVE_UP_SAMPLES)

    @pytest.mark.parametrize("cache", list(CacheState))
    def test_a_timed_launch_is_looked_at_where_that_is_asked(
        self, device: DevicePort, build: Build, cache: CacheState
    ) -> None:
        workload, spans = plan(), [(0, 7), (ELEMENTS - 5, ELEMENTS)]
        device.prepare(workload)
        handle = device.load(build(Behaviour.RIGHT))
        check = TimedCheck({"y": spans}, (Family.DECLARED, OTHER_VARIANT), None)
        seen = device.time(handle, workload.key, size(), TimingPlan(cache, samples=5, check=check)).report
        assert seen is not None
        wanted = doubled(replace(workload, variant=OTHER_VARIANT) if seen.other else workload)
        np.testing.assert_array_equal(seen.run.outputs["y"], np.concatenate([wanted[a:b] for a, b in spans]))
        assert (seen.run.guard_violations, seen.run.changed_inputs) == ((), ())
        unchecked = device.time(handle, workload.key, size(), TimingPlan(cache, samples=5))
        assert unchecked.report is None

    def test_a_refused_launch_leaves_the_device_well(self, device: DevicePort, build: Build) -> None:
        workload = plan()
        device.prepare(workload)
        handle = device.load(build(Behaviour.RIGHT))
        with pytest.raises(KernelRefused):
            device.run(handle, workload.key, TOO_WIDE)
        report = device.run(handle, workload.key, size())
        np.testing.assert_array_equal(report.outputs["y"], doubled(workload))

    def test_a_binary_that_is_none_is_refused(self, device: DevicePort, build: Build) -> None:
        """A driver that crashes over it has ended the child: that is an answer, too."""
        facts = build(Behaviour.RIGHT).facts
        with pytest.raises((KernelRefused, ChildDied)):
            device.load(Compiled(b"not a binary" * 50, "f", facts))

    @pytest.mark.parametrize("behaviour", [Behaviour.FAULTS, Behaviour.HANGS])
    def test_a_fault_ends_the_child_and_the_next_one_works(
        self, opener: DeviceOpener, device: DevicePort, build: Build, behaviour: Behaviour
    ) -> None:
        with pytest.raises(ChildDied) as caught:
            run_once(device, build(behaviour))
        causes = ("timeout",) if behaviour is Behaviour.HANGS else ("signal", "device", "exit")
        assert caught.value.cause in causes
        assert caught.value.detail
        device.close()
        other = opener.open()
        try:
            report = run_once(other, build(Behaviour.RIGHT))
        finally:
            other.close()
        np.testing.assert_array_equal(report.outputs["y"], doubled(plan()))


class KernelDeviceContract(DeviceContract):
    """For devices that run what was compiled from a source."""

    @pytest.mark.parametrize(
        ("behaviour", "buffer"), [(Behaviour.BEFORE_OUTPUT, "y"), (Behaviour.BEHIND_INPUT, "x")]
    )
    def test_a_write_beside_any_buffer_is_reported(
        self, device: DevicePort, build: Build, behaviour: Behaviour, buffer: str
    ) -> None:
        report = run_once(device, build(behaviour))
        assert report.guard_violations == (buffer,)

    def test_what_is_not_finite_comes_back_as_it_is(self, device: DevicePort, build: Build) -> None:
        values = run_once(device, build(Behaviour.NOT_FINITE)).outputs["y"].astype(np.float64)
        assert np.isnan(values[1::2]).all()
        assert np.isposinf(values[0::2]).all()

    def test_inputs_changed_in_place_are_put_back_before_every_launch(
        self, device: DevicePort, build: Build
    ) -> None:
        workload = plan(role=Role.INOUT)
        device.prepare(workload)
        handle = device.load(build(Behaviour.IN_PLACE))
        drawn = draw_inputs(workload)
        wanted = 2.0 * drawn["y"].astype(np.float64) + drawn["x"].astype(np.float64)
        for turn in range(3):
            report = device.run(handle, workload.key, size())
            got = report.outputs["y"].astype(np.float64)
            assert np.allclose(got, wanted, rtol=1e-5, atol=1e-5)
            if turn == 1:
                timed = device.time(handle, workload.key, size(), TimingPlan(CacheState.COLD, samples=3))
                assert len(timed.samples.samples_us) == 3

    def test_an_entry_that_is_not_in_the_binary_is_refused(self, device: DevicePort, build: Build) -> None:
        good = build(Behaviour.RIGHT)
        with pytest.raises(KernelRefused):
            device.load(Compiled(good.binary, "no_such_entry", good.facts))
        assert run_once(device, good).guard_violations == ()
