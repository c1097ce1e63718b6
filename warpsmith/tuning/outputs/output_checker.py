"""Checked launches: poisoned outputs, one launch, and what it left against what it must leave."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from warpsmith.domain.jobs.plan import Compiled, WorkloadPlan
from warpsmith.domain.source_text import uses_atomics
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.tuning.execution.replaceable_child import ReplaceableChild
from warpsmith.tuning.execution.session_inputs import SessionInputs
from warpsmith.tuning.execution.session_ports import Case, CheckedLaunch, LoadedKernel
from warpsmith.tuning.outputs.binary_checks import undeclared_globals, undeclared_words
from warpsmith.tuning.outputs.edge_case_sizes import known_of
from warpsmith.tuning.outputs.expected_outputs import ExpectedOutputs
from warpsmith.tuning.outputs.fair_cases import FairCases
from warpsmith.tuning.outputs.output_checks import CheckedRun, CheckResult, CheckRules, check_run
from warpsmith.verify.checked_ranges import sample_ranges
from warpsmith.verify.element_masks import ElementMask, counted_report
from warpsmith.verify.run_report import Ranges, RunReport

SAMPLED_ELEMENTS = 65_536
"""Elements of each output that a search trial compares; first-time candidates and winners: all."""


@dataclass(frozen=True)
class OutputChecker:
    """Launches, and says what the outputs are worth."""

    child: ReplaceableChild
    inputs: SessionInputs
    expected: ExpectedOutputs
    fair: FairCases

    def launch(
        self, loaded: LoadedKernel, *, whole: bool, repeat: bool = False, on: Case | None = None
    ) -> CheckedLaunch:
        """Launch once on poisoned outputs and bring back what is there.

        Args:
            whole: bring back every element, not a sample.
            repeat: launch again over a half-spoiled result; it must be the same.
            on: other inputs of the workload; None: its own.

        Raises:
            ChildDied: the child is gone; call `DeviceSession.renew`.
            KernelRefused: the driver refused the launch.
        """
        case, defences = on or Case(loaded.workload), self.inputs.defences
        plan, device = self.inputs.plan(case), self.child.device(case)
        masks = self.inputs.masks(case)
        ranges = None if whole and defences.whole else random_ranges(plan, SAMPLED_ELEMENTS, masks)
        repeat, poison = repeat and defences.determinism, defences.poison
        report = device.run(loaded.handle, plan.key, loaded.size, ranges, repeat=repeat, poison=poison)
        return checked_launch(case, plan, report, ranges, masks)

    def evaluate(self, launch: CheckedLaunch) -> CheckResult:
        """Compare the outputs of a launch with the expected ones; any thread may ask.

        Needs a device for a refusal only, of which `FairCases` may have to judge.

        Raises:
            InvalidInput: the reference is of no use.
        """
        found = self._judged(launch)
        if is_wrong(found) and self.expected.judged_by_numpy(launch.case):
            found = self._judged(launch)
        if is_wrong(found) and (ties := self.expected.ties(launch.case)):
            found = self._judged(launch, ties)
        if is_wrong(found) and (room := self.expected.room(launch.case)):
            found = self._judged(launch, self.expected.ties(launch.case), room)
        if isinstance(found, Rejected) and self.fair.excuses(found, launch):
            return 0.0
        if isinstance(found, Rejected) and launch.words:
            return found.model_copy(update={"reason": f"{launch.words}: {found.reason}"[:2000]})
        return found

    def _judged(
        self,
        launch: CheckedLaunch,
        ties: Mapping[str, float] | None = None,
        room: Mapping[str, float] | None = None,
    ) -> CheckResult:
        job, baseline = self.inputs.job, self.inputs.baseline
        # That no two runs of a kernel with atomics differed may be luck.
        is_steady = baseline.is_steady and not uses_atomics(job.kernel.text)
        rules = CheckRules(job, self.inputs.defences, baseline.own_globals, is_steady, ties or {}, room or {})
        expected = self.expected.of(launch.case)
        known = known_of(self.inputs, self.expected, launch.case)
        run = CheckedRun(rules, launch.plan, launch.report, expected, launch.ranges, known, launch.masks)
        return check_run(run)

    def check(
        self, loaded: LoadedKernel, *, whole: bool, repeat: bool = False, on: Case | None = None
    ) -> CheckResult:
        """Launch and evaluate at once; raises as both do."""
        return self.evaluate(self.launch(loaded, whole=whole, repeat=repeat, on=on))

    def refusal(self, launch: CheckedLaunch | None) -> Rejected | None:
        """Rejection of a launch for its outputs; None if they are right or nothing was launched."""
        found = None if launch is None else self.evaluate(launch)
        return found if isinstance(found, Rejected) else None

    def binary_refusal(self, kernel: ConfiguredKernel, compiled: Compiled) -> Rejected | None:
        """Rejection of a binary that may not run; None if it may."""
        on, baseline = self.inputs.defences, self.inputs.baseline
        refusal = undeclared_words(compiled, baseline.own_telling) if on.telling else None
        if refusal is None and on.globals:
            refusal = undeclared_globals(kernel, compiled, baseline.own_globals)
        return refusal


def is_wrong(found: CheckResult) -> bool:
    """True if a launch is refused for its values."""
    return isinstance(found, Rejected) and found.stage is Stage.CORRECTNESS


def checked_launch(
    case: Case,
    plan: WorkloadPlan,
    report: RunReport,
    ranges: Mapping[str, Ranges] | None,
    masks: Mapping[str, ElementMask],
    words: str = "",
) -> CheckedLaunch:
    """A launch of which nothing is known but what counts.

    Args:
        ranges: element ranges that were brought back; None: all.
        masks: masks of the elements that count, by name.
        words: see `CheckedLaunch`.
    """
    return CheckedLaunch(case, plan, counted_report(report, ranges, masks), ranges, words, masks)


def random_ranges(plan: WorkloadPlan, budget: int, masks: Mapping[str, ElementMask]) -> dict[str, Ranges]:
    """Random ranges of every mutated argument, with about `budget` elements of each that count."""
    rng, found = np.random.default_rng(secrets.randbits(128)), {}
    for b in plan.mutated:
        if b.name in masks:
            found[b.name] = masks[b.name].sample(b.shape[-1], rng, budget)
        else:
            found[b.name] = sample_ranges(b.elements, b.shape[-1], rng, budget)
    return found
