"""Timings of a session, one launch of each checked, and the shortest times that a device allows."""

from dataclasses import dataclass, replace

from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import TimedCheck, TimingPlan, TimingSamples
from warpsmith.measure.roofline import Floor, below_floor, floor_of
from warpsmith.tuning.execution.replaceable_child import ReplaceableChild
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case, CheckedLaunch, LoadedKernel
from warpsmith.tuning.outputs.output_checker import checked_launch, random_ranges
from warpsmith.verify.run_report import Timed

TIMED_ELEMENTS = 16_384
"""Elements of each output of a timed launch that are compared."""


@dataclass(frozen=True)
class TimingSampler:
    """Times launches on a workload's own inputs."""

    child: ReplaceableChild
    inputs: SessionInputs

    def time(self, loaded: LoadedKernel, timing: TimingPlan) -> TimingSamples:
        """Time a launch; none is checked.

        Raises:
            ChildDied: the child is gone; call `DeviceSession.renew`.
            KernelRefused: the driver refused the launch.
        """
        return self._time(loaded, timing).samples

    def clocked(self, loaded: LoadedKernel, timing: TimingPlan) -> Timed:
        """Time launches, and return the seconds that the worker waited too; see `time` for errors."""
        return self._time(loaded, timing)

    def sample(
        self, loaded: LoadedKernel, timing: TimingPlan, *, other: Case | None, redraw: bool | None = None
    ) -> tuple[TimingSamples, CheckedLaunch | None]:
        """Time a launch, and bring back what a random one of those that were timed left.

        Args:
            other: inputs that no other launch has, which that launch may get.
            redraw: whether it does, where they can be written between two samples; None: by chance.

        Raises:
            ChildDied: the child is gone; call `DeviceSession.renew`.
            KernelRefused: the driver refused the launch.
        """
        on = self.inputs.defences
        timing = replace(timing, apart=on.outputs_apart)
        if not on.timed_launches:
            return self.time(loaded, timing), None
        if not on.redrawn_values:
            other, redraw = None, False
        plan, masks = self.inputs.plan(loaded.workload), self.inputs.masks(loaded.workload)
        ranges = random_ranges(plan, TIMED_ELEMENTS, masks)
        values = None if other is None else (other.family, other.variant)
        check = TimedCheck(ranges, values, redraw, None if on.unspoiled else True)
        timed = self._time(loaded, replace(timing, check=check))
        if timed.report is None:
            return timed.samples, None
        case = other if timed.report.other and other is not None else Case(loaded.workload)
        words = "in a launch that was timed"
        made = timed.report.run
        masks = self.inputs.masks(case)
        return timed.samples, checked_launch(case, self.inputs.plan(case), made, ranges, masks, words)

    def below_floor(self, workload: Workload, time_us: float) -> str:
        """Words for a time below the workload's floor; empty if a kernel can be so fast, or none is known."""
        floor = self.floor(workload) if self.inputs.defences.floor else None
        return "" if floor is None else below_floor(floor, time_us)

    def floor(self, workload: Workload) -> Floor | None:
        """The shortest time that the device allows for a workload; None if its ceilings are not known."""
        ceilings = self.inputs.baseline.ceilings
        return None if ceilings is None else self.floor_with(ceilings, workload)

    def floor_with(self, ceilings: Ceilings, workload: Workload) -> Floor:
        """The shortest time that these ceilings allow for a workload."""
        job, shares_host = self.inputs.job, self.inputs.info.shares_host
        work = (job.operations_of(workload), job.bytes_of(workload))
        plan, masks = self.inputs.plan(workload), self.inputs.masks(workload)
        shares = {b.name: masks[b.name].count / b.elements for b in plan.mutated if b.name in masks}
        return floor_of(plan, ceilings, job.objective.cache, shares_host, *work, shares)

    def _time(self, loaded: LoadedKernel, timing: TimingPlan) -> Timed:
        device, key = self.child.device(loaded.workload), self.inputs.plan(loaded.workload).key
        return device.time(loaded.handle, key, loaded.size, timing)
