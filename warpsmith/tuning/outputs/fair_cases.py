"""Re-runs the baseline on inputs that rejected a candidate; a rejection stands only if the baseline is right.

A kernel may be right on some draws only: a row of zeros, by which a kernel divides, is in some draws
of sparse inputs and not in others. Whether it writes outside its buffers can depend on the shape: a kernel
without a guard does so wherever its launch has more threads than there are elements. A draw is fair if the
user's kernel is right on it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from warpsmith.domain.jobs.job import NumpyReference
from warpsmith.domain.jobs.plan import CaseKey
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.errors import InvalidInput
from warpsmith.tuning.execution.kernel_reference import OwnKernel
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case, CheckedLaunch, SessionPorts
from warpsmith.tuning.outputs.edge_case_sizes import known_of
from warpsmith.tuning.outputs.expected_outputs import ExpectedOutputs
from warpsmith.tuning.outputs.output_checks import CheckedRun, CheckRules, check_run
from warpsmith.verify.element_masks import counted
from warpsmith.verify.run_report import RunReport


@dataclass
class FairCases:
    """Runs the user's kernel on such inputs when they are about to cost a candidate something; once each."""

    ports: SessionPorts
    inputs: SessionInputs
    expected: ExpectedOutputs
    _unfair: dict[tuple[CaseKey, Stage], bool] = field(default_factory=dict)
    """True: a refusal at this stage on these inputs is excused, since the baseline fails there too."""
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def excuses(self, refused: Rejected, launch: CheckedLaunch) -> bool:
        """True if a refusal does not count, since the user's kernel does the same.

        What is wrong is excused by what is wrong on these very inputs. A write outside the buffers is excused
        by such a write at this shape, and at no shape that the job lists. The workload gets other inputs
        then, so that its next launches are checked on fair ones.
        """
        case = launch.case
        if launch.report.guard_violations and self.inputs.defences.guards:
            # Of several faults of a launch, this is the one that a refusal names.
            return self._may_overrun(case) and self._is_unfair(case, Stage.GUARD, self._overruns)
        if refused.stage is not Stage.CORRECTNESS or not self._may_be_wrong(case):
            return False
        return self._is_unfair(case, Stage.CORRECTNESS, self._is_wrong)

    def _is_unfair(self, case: Case, stage: Stage, judge: Callable[[OwnKernel, Case], bool]) -> bool:
        asked = case.key, stage
        with self._asking:
            if asked not in self._unfair:
                kernel = self.inputs.user_template.configured(self.inputs.job.space.defaults)
                own = OwnKernel(self.ports, kernel)
                try:
                    self._unfair[asked] = judge(own, case)
                finally:
                    own.close()
                if self._unfair[asked]:
                    self.inputs.replace_other(case)
            return self._unfair[asked]

    def _may_overrun(self, case: Case) -> bool:
        """True if the user's kernel may keep to its buffers at the job's own shapes and not at this one.

        Before the baseline is known, the user's kernel itself is on trial.
        """
        return not self.inputs.is_listed(case.workload) and bool(self.inputs.baseline.cases)

    def _may_be_wrong(self, case: Case) -> bool:
        """True if the user's kernel may have been right on the inputs that it was tried on and not on these.

        What a workload is timed with must be right.
        """
        is_timed = case.key.is_own_draw and self.inputs.is_listed(case.workload)
        is_numpy = isinstance(self.inputs.job.reference, NumpyReference)
        return is_numpy and not is_timed and bool(self.inputs.baseline.cases)

    def _overruns(self, own: OwnKernel, case: Case) -> bool:
        # Where inputs are zeros, zeros may be added to what lies outside.
        usual = Case(case.workload)
        cases = [case] if case == usual else [case, usual]
        return own.overruns([self.inputs.plan(c) for c in cases], case.workload)

    def _is_wrong(self, own: OwnKernel, case: Case) -> bool:
        plan = self.inputs.plan(case)
        try:
            (outputs,) = own.outputs([(plan, case.workload)])
        except InvalidInput as exc:
            outputs = exc
        if isinstance(outputs, InvalidInput):
            return False  # that it cannot be told excuses nobody
        masks = self.inputs.masks(case)
        report = RunReport(counted(outputs, masks), guard_violations=(), changed_inputs=())
        ties = self.expected.ties(case)
        rules = CheckRules(self.inputs.job, self.inputs.defences, own_globals=None, ties=ties)
        known = known_of(self.inputs, self.expected, case)
        if known is not None:
            # Its error on another draw is no bound of its own.
            known = known.model_copy(update={"elements": 0})
        found = check_run(CheckedRun(rules, plan, report, self.expected.of(case), None, known, masks))
        return isinstance(found, Rejected)
