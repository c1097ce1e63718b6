"""One job on one device: its inputs, its expected outputs, and a child that is replaced after any fault."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import numpy as np

from warpsmith.domain.device import Backend, Ceilings
from warpsmith.domain.job import Job, NumpyReference, Workload
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import (
    CaseKey,
    Compiled,
    Family,
    LaunchSize,
    TimedCheck,
    TimingPlan,
    TimingSamples,
    WorkloadPlan,
    expecting_launches,
    plan_workload,
)
from warpsmith.domain.space import allows
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import DeviceSick, InvalidInput
from warpsmith.measure.roofline import Floor, below_floor, floor_of
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.device_probe import why_sick
from warpsmith.tuning.session.kernel_reference import run_own_kernel
from warpsmith.tuning.session.output_checks import check_run, undeclared_globals
from warpsmith.tuning.session.session_ports import NOTHING_RUNS, Case, CheckedLaunch, SessionPorts
from warpsmith.tuning.tasks import BaselineResult, CheckedCase
from warpsmith.verify.checked_ranges import sample_ranges
from warpsmith.verify.defences import Defences
from warpsmith.verify.run_report import Array, Ranges

__all__ = ["Case", "CheckedLaunch", "DeviceSession", "SessionPorts"]

SAMPLED_ELEMENTS = 65_536
"""Elements of each output that a search trial compares; first-time candidates and winners compare all."""
TIMED_ELEMENTS = 16_384
"""Elements of each output of a timed launch that are compared."""
FIRST_OTHER_VARIANT = 1_000
"""First number of variants for other inputs; timings rotate over the variants below it."""


@dataclass
class DeviceSession:
    """Holds one device child with prepared workloads; call `close` in the end.

    The seed of the inputs is secret and drawn when the session is made. Expected outputs live here,
    in the worker, and never in a process that runs a candidate.
    """

    job: Job
    ports: SessionPorts
    seed: int = field(default_factory=lambda: secrets.randbits(48))
    ceilings: Ceilings | None = None
    sizes: dict[str, dict[str, float]] = field(default_factory=dict)
    """Typical size of outputs by workload and name; see `tuning.session.output_scale`."""
    _device: DevicePort | None = None
    _prepared: set[CaseKey] = field(default_factory=set)
    _plans: dict[CaseKey, WorkloadPlan] = field(default_factory=dict)
    _expected: dict[CaseKey, Mapping[str, Array]] = field(default_factory=dict)
    _cases: dict[tuple[str, Family], CheckedCase] = field(default_factory=dict)
    _others: dict[str, Case] = field(default_factory=dict)
    _own_globals: frozenset[str] = frozenset()
    _suspect: bool = False

    @property
    def defences(self) -> Defences:
        """The defences in force."""
        return NOTHING_RUNS if self.ports.opener.info.backend is Backend.REPLAY else self.ports.defences

    @property
    def user_template(self) -> Template:
        """The user's own kernel with the user's own tunables."""
        return Template(kernel=self.job.kernel, space=self.job.space)

    def learn(self, baseline: BaselineResult) -> None:
        """Adopt the cases on which the user's kernel was right, with its errors."""
        self._cases = {(Workload(dimensions=c.dimensions).key, c.family): c for c in baseline.cases}
        self.sizes = {w: c.sizes for (w, _), c in self._cases.items()}
        self._own_globals = frozenset(baseline.globals)
        self.ceilings = baseline.ceilings

    def other(self, workload: Workload) -> Case:
        """Inputs other than the workload's own: one random family and variant for the life of this
        session."""
        if workload.key not in self._others:
            families = [Family.DECLARED]
            if self.defences.families:
                families += [f for key, f in self._cases if key == workload.key]
            variant = FIRST_OTHER_VARIANT + secrets.randbelow(1 << 20)
            self._others[workload.key] = Case(workload, secrets.choice(families), variant)
        return self._others[workload.key]

    def another_draw(self, workload: Workload) -> Case:
        """Other values of the workload's own distribution."""
        return Case(workload, Family.DECLARED, self.other(workload).variant)

    def plan(self, of: Workload | Case) -> WorkloadPlan:
        """Arguments of a workload in numbers, with this session's secret seed."""
        case = _case(of)
        if case.key not in self._plans:
            scope = self.ports.opener.info.scope() | self.job.space.defaults
            plan = plan_workload(self.job.kernel, case.workload, scope, self.seed)
            self._plans[case.key] = replace(plan, family=case.family, variant=case.variant)
        return self._plans[case.key]

    def device(self, of: Workload | Case) -> DevicePort:
        """A living child that has `of` prepared.

        Raises:
            ChildDied: the device cannot be opened.
            DeviceSick: the previous child died, and now the probe kernel fails as well.
        """
        if self._device is None:
            self._probe()
            self._device = self.ports.opener.open()
            self._prepared = set()
        key = _case(of).key
        if key not in self._prepared:
            self._device.prepare(self.plan(of))
            self._prepared.add(key)
        return self._device

    def _probe(self) -> None:
        suspect, self._suspect = self._suspect, False
        words = (
            why_sick(self.ports) if suspect and self.ports.opener.info.backend is not Backend.REPLAY else ""
        )
        if words:
            raise DeviceSick(words)

    def release(self, of: Workload | Case) -> None:
        """Free a workload's buffers, if it is prepared."""
        key = _case(of).key
        if self._device is not None and key in self._prepared:
            self._device.release(key)
            self._prepared.discard(key)

    def renew(self, faulted: bool = False) -> None:
        """Drop the child; the next use opens a fresh one.

        Args:
            faulted: the child died; the device is probed before the next one.
        """
        self._suspect = self._suspect or faulted
        device, self._device = self._device, None
        self._prepared = set()
        if device is not None:
            device.close()

    def close(self) -> None:
        """End the child."""
        self.renew()

    def compile(self, kernel: ConfiguredKernel) -> Compiled | Rejected:
        """Compile and wait."""
        return self.submit(kernel).result()

    def submit(self, kernel: ConfiguredKernel) -> "Future[Compiled | Rejected]":
        """Start compiling for the launches of this job."""
        info = self.ports.opener.info
        return self.ports.compiler.submit(expecting_launches(kernel, self.job.workloads, info), info)

    def refuse_binary(self, kernel: ConfiguredKernel, compiled: Compiled) -> Rejected | None:
        """The reason why a binary may not run; None if it may."""
        if not self.defences.globals:
            return None
        return undeclared_globals(kernel, compiled, self._own_globals)

    def expected(self, of: Workload | Case) -> Mapping[str, Array]:
        """Expected contents of every mutated argument, flat, by argument name.

        Raises:
            InvalidInput: the reference cannot be used; the message says why.
        """
        failed = self.expect([_case(of)])
        if failed:
            raise next(iter(failed.values()))
        return self._expected[_case(of).key]

    def expect(self, cases: Iterable[Case]) -> dict[CaseKey, InvalidInput]:
        """Compute missing expected outputs in one process; returns errors by the key of failed cases."""
        missing = {c.key: c for c in cases if c.key not in self._expected}
        if not missing:
            return {}
        reference = self.job.reference
        failed: dict[CaseKey, InvalidInput] = {}
        wanted = [(self.plan(c), c.workload.dimensions) for c in missing.values()]
        found: Sequence[Mapping[str, Array] | InvalidInput]
        if isinstance(reference, NumpyReference):
            found = self.ports.reference.numpy_many(reference.source, reference.function, wanted)
        else:
            kernel = self.user_template.configured(self.job.space.defaults)
            asked = [(self.plan(c), c.workload) for c in missing.values()]
            found = run_own_kernel(self.ports, kernel, asked)
        for key, outputs in zip(missing, found, strict=True):
            if isinstance(outputs, InvalidInput):
                failed[key] = outputs
            else:
                self._expected[key] = outputs
        return failed

    def adopt(self, other: "DeviceSession") -> None:
        """Share expected outputs and knowledge with another session of the same seed."""
        assert other.seed == self.seed
        self._expected, self._others = other._expected, other._others
        self._cases, self._own_globals = other._cases, other._own_globals
        self.ceilings = other.ceilings

    def forget_cases(self) -> None:
        """Free expected outputs of inputs that no search trial uses."""
        kept = {c.key for c in self._others.values()}
        for key in [k for k in self._expected if not k.is_own_draw and k not in kept]:
            del self._expected[key]

    def forget_expected(self, workload: Workload) -> None:
        """Free expected outputs that will not be needed again."""
        for key in [k for k in self._expected if k.workload == workload.key]:
            del self._expected[key]

    def allowed(
        self, template: Template, kernel: ConfiguredKernel, workloads: Sequence[Workload] | None = None
    ) -> list[Workload]:
        """Workloads on which the constraints allow this configuration."""
        device = self.ports.opener.info.scope()
        return [
            w
            for w in (self.job.workloads if workloads is None else workloads)
            if allows(template.space.constraints, kernel.scope(w.scope(), device)) is None
        ]

    def launch(
        self, handle: int, of: Workload | Case, size: LaunchSize, *, whole: bool, repeat: bool = False
    ) -> CheckedLaunch:
        """Launch once on poisoned outputs and read them back.

        Args:
            repeat: launch again over a half-overwritten result; both results must be equal.

        Raises:
            ChildDied: the child is gone; call `renew`.
            KernelRefused: the driver refused the launch.
        """
        case, plan, on = _case(of), self.plan(of), self.defences
        ranges = None if whole and on.whole else _ranges(plan, SAMPLED_ELEMENTS)
        repeat = repeat and on.determinism
        report = self.device(of).run(handle, plan.key, size, ranges, repeat=repeat, poison=on.poison)
        return CheckedLaunch(case, plan, report, ranges)

    def evaluate(self, launch: CheckedLaunch) -> float | Rejected:
        """The largest error in units of the tolerance, or a rejection. Needs no device; any thread may call
        it."""
        found = check_run(
            self.job,
            launch.plan,
            launch.report,
            self.expected(launch.case),
            launch.ranges,
            self.defences,
            self.known(launch.case),
            self._own_globals,
            all(c.spread == 0.0 for c in self._cases.values()),
        )
        if isinstance(found, Rejected) and launch.words:
            return found.model_copy(update={"reason": f"{launch.words}: {found.reason}"[:2000]})
        return found

    def check(
        self, handle: int, of: Workload | Case, size: LaunchSize, *, whole: bool, repeat: bool = False
    ) -> float | Rejected:
        """Launch and evaluate at once."""
        return self.evaluate(self.launch(handle, of, size, whole=whole, repeat=repeat))

    def sample(
        self,
        handle: int,
        workload: Workload,
        size: LaunchSize,
        timing: TimingPlan,
        *,
        other: Case | None,
        redraw: bool | None = None,
    ) -> tuple[TimingSamples, CheckedLaunch | None]:
        """Time a launch, and read back the outputs of a random one among the timed launches.

        Args:
            other: inputs of no other launch, which that launch may get.
            redraw: whether it gets them, if they can be written between two samples; None: at random.
        """
        on = self.defences
        timing, key = replace(timing, apart=on.outputs_apart), self.plan(workload).key
        if not on.timed_launches:
            return self.device(workload).time(handle, key, size, timing).samples, None
        if not on.redrawn_values:
            other, redraw = None, False
        ranges = _ranges(self.plan(workload), TIMED_ELEMENTS)
        values = None if other is None else (other.family, other.variant)
        check = TimedCheck(ranges, values, redraw)
        timed = self.device(workload).time(handle, key, size, replace(timing, check=check))
        samples, seen = timed.samples, timed.report
        if seen is None:
            return samples, None
        case = other if seen.other and other is not None else Case(workload)
        return samples, CheckedLaunch(case, self.plan(case), seen.run, ranges, "in a launch that was timed")

    def refuse(self, launch: CheckedLaunch | None) -> Rejected | None:
        """The rejection if a launch's outputs are wrong; None if they are right or were not checked."""
        found = None if launch is None else self.evaluate(launch)
        return found if isinstance(found, Rejected) else None

    def below_floor(self, workload: Workload, time_us: float) -> str:
        """The reason why a time is impossibly short; empty if it is possible, or if the floor is unknown."""
        if not self.defences.floor or self.ceilings is None:
            return ""
        return below_floor(self.floor(workload), time_us)

    def floor(self, workload: Workload) -> Floor:
        """The shortest time that the device allows for a workload."""
        assert self.ceilings is not None
        job, shares_host = self.job, self.ports.opener.info.shares_host
        operations = job.operations_of(workload)
        return floor_of(self.plan(workload), self.ceilings, job.objective.cache, shares_host, operations)

    def known(self, of: Workload | Case) -> CheckedCase | None:
        """Result of the user's kernel on these inputs; None if unknown."""
        case = _case(of)
        return self._cases.get((case.workload.key, case.family))

    @property
    def cases(self) -> Sequence[CheckedCase]:
        """All cases on which the user's kernel is right."""
        return tuple(self._cases.values())


def _case(of: Workload | Case) -> Case:
    return of if isinstance(of, Case) else Case(of)


def _ranges(plan: WorkloadPlan, budget: int) -> dict[str, Ranges]:
    rng = np.random.default_rng(secrets.randbits(128))
    return {b.name: sample_ranges(b.elements, b.shape[-1], rng, budget) for b in plan.mutated}
