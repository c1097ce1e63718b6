"""Expected outputs of every launch. They stay in the worker, away from the process of a candidate."""

import functools
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import NumpyReference, Tolerance, Workload
from warpsmith.domain.jobs.plan import BufferPlan, CaseKey, Family, WorkloadPlan, moved
from warpsmith.errors import ExpressionError, InvalidInput
from warpsmith.tuning.execution.kernel_reference import OwnKernel
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case, SessionPorts, as_case
from warpsmith.tuning.outputs.output_checks import tolerance_of
from warpsmith.tuning.outputs.rounding_room import may_cancel, room_of
from warpsmith.tuning.outputs.rounding_ties import allowed_share, rounds_floats, ties_of
from warpsmith.tuning.ports import ReferencePort
from warpsmith.tuning.tasks import CheckedCase
from warpsmith.verify.compare import root_mean_square
from warpsmith.verify.element_masks import counted
from warpsmith.verify.run_report import Array
from warpsmith.verify.tolerance import output_sizes

DEVICE_ELEMENTS = 1 << 18
"""Elements of all buffers of a case from which its reference is computed on the device: below it, NumPy is as
quick as the transfers."""

log = logging.getLogger(__name__)


@dataclass
class ExpectedOutputs:
    """Outputs of the job's reference, computed once for each case and kept until they are forgotten.

    Of outputs of which not all elements count they hold the others no more: nothing that is asked of them may
    look there.
    """

    inputs: SessionInputs
    ports: SessionPorts
    _known: dict[CaseKey, Mapping[str, Array]] = field(default_factory=dict)
    _sizes: dict[tuple[CaseKey, str], float] = field(default_factory=dict)
    _ties: dict[CaseKey, Mapping[str, float]] = field(default_factory=dict)
    _rooms: dict[CaseKey, Mapping[str, float]] = field(default_factory=dict)
    _reference: ReferencePort | None = None
    _own: OwnKernel | None = None
    _by_device: set[CaseKey] = field(default_factory=set)
    """Cases whose outputs the device computed."""
    _told: set[CaseKey] = field(default_factory=set)
    """Cases whose outputs NumPy computed after the device."""
    _device_fails: bool = False
    """The device cannot compute this reference, or not as NumPy does."""
    _rehearsal: threading.Thread | None = None
    _computing: threading.RLock = field(default_factory=threading.RLock)
    """Held by the thread that computes: winners are checked beside each other, on the same cases."""

    @property
    def reference(self) -> ReferencePort:
        """NumPy reference that computes the outputs, unless the user's kernel is the reference."""
        return self.ports.reference if self._reference is None else self._reference

    @contextmanager
    def computed_by(self, reference: ReferencePort) -> Iterator[None]:
        """While it is open, `reference` computes what is not known yet."""
        before, self._reference = self._reference, reference
        try:
            yield
        finally:
            self._reference = before

    def of(self, of: Workload | Case) -> Mapping[str, Array]:
        """Right values of the elements that count of every mutated argument, flat, by argument name.

        Raises:
            InvalidInput: the reference is of no use; says why.
        """
        failed = self.compute([as_case(of)])
        if failed:
            raise next(iter(failed.values()))
        return self._known[as_case(of).key]

    def compute(self, cases: Iterable[Case]) -> dict[CaseKey, InvalidInput]:
        """Compute what is not known yet, in one process.

        Returns:
            The cases whose reference failed, each with what it did.
        """
        failed: dict[CaseKey, InvalidInput] = {}
        with self._computing:
            missing = {c.key: c for c in cases if c.key not in self._known}
            if not missing:
                return failed
            for key, outputs in zip(missing, self._computed(list(missing.values())), strict=True):
                if isinstance(outputs, InvalidInput):
                    failed[key] = outputs
                else:
                    self._known[key] = self._counted(missing[key], outputs)
        return failed

    def _counted(self, case: Case, outputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Raises `ExpressionError` if it cannot be said what counts."""
        return counted(outputs, self.inputs.masks(case))

    def on_device(self, case: Case) -> bool:
        """True if the outputs of a case are computed on the device, and so never while something is timed."""
        if self.ports.device_reference is None or self._device_fails:
            return False
        is_numpy = isinstance(self.inputs.job.reference, NumpyReference)
        return is_numpy and sum(b.elements for b in self.inputs.plan(case).buffers) >= DEVICE_ELEMENTS

    def rehearse(self) -> None:
        """Start what computes on the device, with the smallest case for it, while nothing is timed.

        Its libraries compile what the reference calls, which takes longer than any computation.
        """
        try:
            cases = [c for w in self.inputs.job.workloads if self.on_device(c := Case(w))]
        except ExpressionError:
            return  # it is said in its turn
        if cases:
            smallest = min(cases, key=lambda c: sum(b.elements for b in self.inputs.plan(c).buffers))
            self._rehearsal = threading.Thread(target=self.compute, args=([smallest],), daemon=True)
            self._rehearsal.start()

    def rehearsed(self) -> None:
        """Wait for the end of a rehearsal."""
        if self._rehearsal is not None:
            self._rehearsal.join()
            self._rehearsal = None

    def judged_by_numpy(self, case: Case) -> bool:
        """Have NumPy itself say what a case must leave; True if a launch may have been judged by less.

        Of several threads that ask, one computes, and the others wait for it.
        """
        with self._computing:
            if case.key in self._by_device:
                (outputs,) = self._by_numpy([case])
                if isinstance(outputs, InvalidInput):
                    raise outputs
                self._by_device.discard(case.key)
                self._told.add(case.key)
                self._known[case.key] = self._counted(case, outputs)
            return case.key in self._told

    def close(self) -> None:
        """End the process in which the user's kernel computes them, if there is one."""
        self.rehearsed()
        if self._own is not None:
            self._own.close()

    def forget_cases(self) -> None:
        """Free outputs on inputs that no search trial gets."""
        for key in [k for k in self._known if not self.inputs.search_gets(k)]:
            del self._known[key]
        self.inputs.forget_masks(lambda key: not self.inputs.search_gets(key))

    def forget(self, workload: Workload) -> None:
        """Free all outputs of a workload but those of edge cases, which are small and serve every winner."""

        def is_done(key: CaseKey) -> bool:
            return key.workload == workload.key and key.family is not Family.EDGE_CASE

        for key in [k for k in self._known if is_done(k)]:
            del self._known[key]
        self.inputs.forget_masks(is_done)

    def root_mean_square(self, case: Case, name: str) -> float:
        """Root mean square of an output; raises as `of` does."""
        if (case.key, name) not in self._sizes:
            self._sizes[case.key, name] = root_mean_square(self.of(case)[name])
        return self._sizes[case.key, name]

    def sizes(self, workload: Workload) -> dict[str, float]:
        """Typical size of every float output by name; of a listed workload, over two draws of its inputs.

        Outputs of another shape may cancel by its extents: it has the least size of the listed ones at
        least. Default tolerances go by these sizes.

        Raises:
            InvalidInput: the reference is of no use.
        """
        sizes = self.inputs.baseline.sizes
        if workload.key not in sizes:
            listed = [w.key for w in self.inputs.job.workloads]
            is_listed = workload.key in listed
            cases = self.inputs.own_draws(workload) if is_listed else [Case(workload)]
            own = output_sizes(self.inputs.plan(workload), [self.of(c) for c in cases])
            known = [] if is_listed else [s for k in listed if (s := sizes.get(k))]
            least = {n: min((s[n] for s in known), default=0.0) for n in own}
            sizes[workload.key] = {n: max(size, least[n]) for n, size in own.items()}
        return sizes[workload.key]

    def moved(self, case: Case, share: float) -> Mapping[str, Array]:
        """Outputs of the reference for inputs whose floats are each moved by up to this share of their size.

        Raises:
            InvalidInput: the reference is of no use there.
        """
        plan = moved(self.inputs.plan(case), share)
        with self._computing:
            (outputs,) = self._from_plans([(plan, case.workload)])
        if isinstance(outputs, InvalidInput):
            raise outputs
        return self._counted(case, outputs)

    def ties(self, case: Case) -> Mapping[str, float]:
        """Share of each integer output that may be a step off, by name; see `rounding_ties`."""
        outputs = rounds_floats(self.inputs.job, self.inputs.plan(case))
        ties, missed = self._tie_counts(case, outputs), self.inputs.baseline.missed
        found = {}
        for name, elements in ((b.name, self.of(case)[b.name].size) for b in outputs):
            count = ties.get(name, 0.0) + missed.get(name, 0.0) * elements
            if count and elements:
                found[name] = allowed_share(count, elements)
        return found

    def room(self, case: Case) -> Mapping[str, float]:
        """Absolute error of each output that roundings explain, by name; see `rounding_room`."""
        plan = self.inputs.plan(case)
        outputs = may_cancel(self.inputs.job, plan)
        if outputs and case.key not in self._rooms:
            try:
                found = room_of(plan, outputs, self.of(case), functools.partial(self.moved, case))
            except InvalidInput:
                found = {}
            self._rooms[case.key] = found
        return self._rooms.get(case.key, {})

    def tolerance(self, workload: Workload, output: BufferPlan) -> Tolerance:
        """Tolerance of an output on the workload's own inputs. Raises as `sizes` does."""
        sized = CheckedCase(dimensions=workload.dimensions, sizes=self.sizes(workload))
        return tolerance_of(self.inputs.job, self.inputs.plan(workload), output, sized)

    def _tie_counts(self, case: Case, outputs: Sequence[BufferPlan]) -> Mapping[str, float]:
        """See `ties_of`; none where the reference fails."""
        if not outputs:
            return {}
        if case.key not in self._ties:
            own = Case(case.workload)
            rounded = {} if case.key == own.key else self._tie_counts(own, outputs)
            moved = functools.partial(self.moved, case)
            try:
                found = ties_of(self.inputs.plan(case), outputs, self.of(case), moved, rounded)
            except InvalidInput:
                found = {}
            self._ties[case.key] = found
        return self._ties[case.key]

    def _computed(self, cases: Sequence[Case]) -> Sequence[Mapping[str, Array] | InvalidInput]:
        job = self.inputs.job
        if isinstance(job.reference, NumpyReference):
            found: dict[CaseKey, Mapping[str, Array] | InvalidInput] = {}
            for case in cases:
                if self.on_device(case) and (outputs := self._by_the_device(case)) is not None:
                    found[case.key] = outputs
            rest = [c for c in cases if c.key not in found]
            found |= zip([c.key for c in rest], self._by_numpy(rest), strict=True)
            return [found[c.key] for c in cases]
        return self._from_plans([(self.inputs.plan(c), c.workload) for c in cases])

    def _by_numpy(self, cases: Sequence[Case]) -> Sequence[Mapping[str, Array] | InvalidInput]:
        return self._from_plans([(self.inputs.plan(c), c.workload) for c in cases])

    def _from_plans(
        self, wanted: Sequence[tuple[WorkloadPlan, Workload]]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """By NumPy, or by the user's kernel if that is the reference."""
        if not wanted:
            return ()
        job = self.inputs.job
        if isinstance(job.reference, NumpyReference):
            plans = [(plan, workload.dimensions) for plan, workload in wanted]
            return self.reference.numpy_many(job.reference.source, job.reference.function, plans)
        if self._own is None:
            self._own = OwnKernel(self.ports, self.inputs.user_template.configured(job.space.defaults))
        return self._own.outputs(wanted)

    def _by_the_device(self, case: Case) -> Mapping[str, Array] | None:
        reference, port = self.inputs.job.reference, self.ports.device_reference
        assert isinstance(reference, NumpyReference)
        assert port is not None
        wanted = [(self.inputs.plan(case), case.workload.dimensions)]
        (outputs,) = port.numpy_many(reference.source, reference.function, wanted)
        if isinstance(outputs, InvalidInput):
            log.info("references are computed on the host: on the device, %s", outputs)
            self._device_fails = True
            return None
        self._by_device.add(case.key)
        return outputs
