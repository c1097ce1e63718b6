"""Session of one job on one device: a child that is replaced after any fault, its inputs and checks."""

import secrets
from concurrent.futures import Future

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.tuning.execution import variants
from warpsmith.tuning.execution.baseline_knowledge import BaselineKnowledge
from warpsmith.tuning.execution.replaceable_child import ReplaceableChild
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import (
    NOTHING_RUNS,
    Case,
    CheckedLaunch,
    LoadedKernel,
    SessionPorts,
)
from warpsmith.tuning.outputs.expected_outputs import ExpectedOutputs
from warpsmith.tuning.outputs.fair_cases import FairCases
from warpsmith.tuning.outputs.output_checker import OutputChecker
from warpsmith.tuning.ports import DevicePort
from warpsmith.tuning.session.timing_sampler import TimingSampler

__all__ = ["Case", "CheckedLaunch", "DeviceSession", "LoadedKernel", "SessionPorts"]


class DeviceSession:
    """Holds one device child with prepared workloads; call `close` in the end.

    The seed of the inputs is secret. Inputs beside the workload's own are drawn anew in every session.

    Args:
        seed: of the inputs, if sessions of the job share it; None: drawn.
        shares: a session whose inputs and expected outputs this one has as well; see `sibling`.

    Attributes:
        inputs: what launches get.
        expected: what they must leave.
        baseline: what is known of the user's kernel.
        checker: launches, and compares what they left.
        sampler: times.
    """

    def __init__(
        self, job: Job, ports: SessionPorts, seed: int | None = None, *, shares: "DeviceSession | None" = None
    ) -> None:
        self.ports = ports
        self._is_sibling = shares is not None
        if shares is None:
            defences = NOTHING_RUNS if self.info.backend.language.is_recorded else ports.defences
            secret = secrets.randbits(48) if seed is None else seed
            self.inputs = SessionInputs(job, self.info, defences, secret, BaselineKnowledge())
            self.expected = ExpectedOutputs(self.inputs, ports)
            self._fair = FairCases(ports, self.inputs, self.expected)
        else:
            self.inputs, self.expected, self._fair = shares.inputs, shares.expected, shares._fair
        self.baseline = self.inputs.baseline
        # The parts refer to the child and never to the session: no cycle keeps large arrays alive.
        self._child = ReplaceableChild(ports, self.inputs)
        self.checker = OutputChecker(self._child, self.inputs, self.expected, self._fair)
        self.sampler = TimingSampler(self._child, self.inputs)

    @property
    def job(self) -> Job:
        """The job whose kernels run."""
        return self.inputs.job

    @property
    def info(self) -> DeviceInfo:
        """The device."""
        return self.ports.opener.info

    def sibling(self) -> "DeviceSession":
        """Another child of the same device, with the inputs and expected outputs of this session."""
        return DeviceSession(self.job, self.ports, shares=self)

    def compile(self, kernel: ConfiguredKernel) -> Compiled | Rejected:
        """Compile and wait."""
        return self.submit(kernel).result()

    def submit(self, kernel: ConfiguredKernel) -> "Future[Compiled | Rejected]":
        """Start compiling for the launches of this job."""
        return variants.submit(self.ports.compiler, kernel, self.job.workloads, self.info)

    def variants(self, kernel: ConfiguredKernel, compiled: Compiled) -> variants.LoadedVariants:
        """Handles of a compiled kernel, for launches on shapes beyond the job's workloads, too."""
        return variants.LoadedVariants(self.ports.compiler, self.info, kernel, compiled)

    def device(self, of: Workload | Case) -> DevicePort:
        """See `ReplaceableChild.device`; raises as it does."""
        return self._child.device(of)

    def release(self, of: Workload | Case) -> None:
        """Free a case's buffers if it is prepared."""
        self._child.release(of)

    def renew(self, faulted: bool = False) -> None:
        """Drop the child; see `ReplaceableChild.renew`."""
        self._child.renew(faulted)

    def close(self) -> None:
        """End the child, and what the session alone has."""
        self._child.renew()
        if not self._is_sibling:
            self.expected.close()
