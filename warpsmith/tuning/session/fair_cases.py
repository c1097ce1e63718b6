"""Whether a candidate may be refused for what it left on inputs that the user's kernel was not tried on.

Whether a kernel is right can depend on the draw: a row of zeros, by which a kernel divides, is in some draws
of sparse inputs and not in others. A draw is fair if the user's kernel is right on it.
"""

import threading
from dataclasses import dataclass, field

from warpsmith.domain.job import NumpyReference
from warpsmith.domain.outcome import Rejected, Stage
from warpsmith.domain.plan import CaseKey
from warpsmith.errors import InvalidInput
from warpsmith.tuning.session.expected_outputs import ExpectedOutputs
from warpsmith.tuning.session.kernel_reference import OwnKernel
from warpsmith.tuning.session.output_checks import CheckRules, check_run
from warpsmith.tuning.session.session_inputs import SessionInputs
from warpsmith.tuning.session.session_ports import Case, SessionPorts
from warpsmith.tuning.session.world_sizes import known_of
from warpsmith.verify.run_report import RunReport


@dataclass
class FairCases:
    """Runs the user's kernel on such inputs when they are about to cost a candidate something; once each."""

    ports: SessionPorts
    inputs: SessionInputs
    expected: ExpectedOutputs
    _found: dict[CaseKey, bool] = field(default_factory=dict)
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def excuses(self, refused: Rejected, case: Case) -> bool:
        """True if a refusal does not count, since the user's kernel is wrong on these very inputs as well.

        The workload gets other inputs then, so that its next launches are checked on fair ones.
        """
        if refused.stage is not Stage.CORRECTNESS or not self._can_differ(case):
            return False
        with self._asking:
            if case.key not in self._found:
                self._found[case.key] = self._is_right(case)
                if not self._found[case.key]:
                    self.inputs.replace_other(case)
            return not self._found[case.key]

    def _can_differ(self, case: Case) -> bool:
        """True if the user's kernel may have been right on the inputs that it was tried on and not on these.

        What a workload is timed with must be right. Before the baseline is known, the user's kernel itself
        is on trial.
        """
        job, key = self.inputs.job, case.key
        is_timed = key.is_own_draw and key.workload in {w.key for w in job.workloads}
        is_numpy = isinstance(job.reference, NumpyReference)
        return is_numpy and not is_timed and bool(self.inputs.baseline.cases)

    def _is_right(self, case: Case) -> bool:
        job, plan = self.inputs.job, self.inputs.plan(case)
        own = OwnKernel(self.ports, self.inputs.user_template.configured(job.space.defaults))
        try:
            (outputs,) = own.outputs([(plan, case.workload)])
        except InvalidInput as exc:
            outputs = exc
        finally:
            own.close()
        if isinstance(outputs, InvalidInput):
            return True  # that it cannot be told excuses nobody
        report = RunReport(outputs, guard_violations=(), changed_inputs=())
        rules = CheckRules(job, self.inputs.defences, own_globals=None)
        known = known_of(self.inputs, self.expected, case)
        if known is not None:
            # Its error on another draw is no bound of its own.
            known = known.model_copy(update={"elements": 0})
        found = check_run(rules, plan, report, self.expected.of(case), None, known)
        return not isinstance(found, Rejected)
