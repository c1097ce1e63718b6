"""A test plan joins the checks: what the tester asks for, candidates have to be right on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from agents.context import StepContext
from agents.replies.reply_acceptance import accept
from testbed.fakes import FakeDevice, FakeOpener, ListSink, fake_ports
from tests.agents.replies import as_text
from tests.unit.tuning.test_tuning_loops import LIMITS, Listed, times
from warpsmith.domain.jobs.plan import CaseKey, Family
from warpsmith.domain.templates.space import Configuration
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.checks.tester_cases import check_proposals
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.tasks import (
    BaselineResult,
    CasesResult,
    JobBaseline,
    ProposedCase,
    SliceResult,
    StepPayload,
    joined,
)
from warpsmith.tuning.trials.slice import run_slice
from warpsmith.verify.run_report import RunReport

JOB = scale_job()
WrongAt = Callable[[str], bool]
ASKED = (
    ProposedCase(dimensions={"n": 777}, reason="the test"),
    ProposedCase(dimensions={"n": 4096}, family=Family.SORTED),
)


class SpoiltDevice(FakeDevice):
    """Right everywhere but on some cases."""

    wrong_at: WrongAt
    spares_own: bool

    def run(self, handle: int, case: CaseKey, *rest: Any, **more: Any) -> RunReport:
        report = super().run(handle, case, *rest, **more)
        spared = self.spares_own and self.loaded[handle] == JOB.space.defaults
        if self.wrong_at(str(case)) and not spared:
            return replace(report, outputs={"y": report.outputs["y"].astype(np.float32) + np.float32(1)})
        return report


@dataclass
class SpoiltOpener(FakeOpener):
    wrong_at: WrongAt = lambda key: False
    spares_own: bool = False
    """True if the user's kernel is right everywhere."""

    def open(self) -> FakeDevice:
        device = SpoiltDevice(self.info, self.model, self.fault, self.compiled)
        device.wrong_at, device.spares_own = self.wrong_at, self.spares_own
        self.opened.append(device)
        return device


def ports(wrong_at: WrongAt = lambda key: False, *, spares_own: bool = False) -> SessionPorts:
    """Ports over a device whose kernels are wrong on some cases."""
    made, opener = fake_ports(times)
    return SessionPorts(
        SpoiltOpener(opener.model, opener.fault, opener.compiled, wrong_at=wrong_at, spares_own=spares_own),
        made.compiler,
        made.reference,
    )


def baseline(proposed: tuple[ProposedCase, ...], wrong_at: WrongAt = lambda key: False) -> BaselineResult:
    """What the user's kernel is right on, with a test plan; a kernel that may be wrong where that asks."""
    known = measure_baseline(DeviceSession(JOB, ports()))
    return checked(known, proposed, wrong_at)


def checked(
    known: BaselineResult, proposed: tuple[ProposedCase, ...], wrong_at: WrongAt = lambda key: False
) -> JobBaseline:
    """The same, of a baseline that is known."""
    after = joined([known, check_proposals(DeviceSession(JOB, ports(wrong_at)), known, proposed)])
    assert after is not None
    return after


def cases(result: BaselineResult) -> set[tuple[int, Family, bool]]:
    return {(c.dimensions["n"], c.family, bool(c.neighbour_of)) for c in result.cases}


def gate(result: BaselineResult, wrong_at: WrongAt) -> SliceResult:
    """The first trial of a candidate that is wrong on some cases."""
    session = DeviceSession(JOB, ports(wrong_at, spares_own=True))
    configurations: list[Configuration] = []
    own = session.inputs.user_template
    other = tuple(p.model_copy(update={"default": p.values[-1]}) for p in own.space.parameters)
    template = own.model_copy(update={"space": own.space.model_copy(update={"parameters": other})})
    return run_slice(session, template, result, Listed(configurations), ListSink(), LIMITS)


def test_what_is_asked_for_is_added_and_nothing_is_lost() -> None:
    known = measure_baseline(DeviceSession(JOB, ports()))
    after = checked(known, ASKED)
    assert after.cases[: len(known.cases)] == known.cases
    assert (777, Family.DECLARED, True) in cases(after)
    assert (4096, Family.SORTED, False) in cases(after)
    assert after.model_copy(update={"cases": known.cases}) == joined([known])
    assert checked(after, ASKED) == after, "a case that is known is not tried again"


@pytest.mark.parametrize("wrong", ["n=777", "n=4096#sorted"])
def test_a_case_that_the_user_s_kernel_fails_is_left_out(wrong: str) -> None:
    known = measure_baseline(DeviceSession(JOB, ports()))
    kept = known.model_copy(update={"cases": tuple(c for c in known.cases if c.family is not Family.SORTED)})
    after = checked(kept, ASKED, lambda key: key.startswith(wrong))
    added = cases(after) - cases(kept)
    assert len(added) == 1
    assert (777 in {n for n, _, _ in added}) is (wrong != "n=777")


def test_a_candidate_that_is_wrong_only_there_is_rejected() -> None:
    def fails(key: str) -> bool:
        return key.startswith("n=777")

    assert gate(baseline(()), fails).reason == ""
    assert "at the neighbouring shape n=777" in gate(baseline(ASKED), fails).reason


def test_a_shape_that_takes_too_much_memory_is_not_tried() -> None:
    known = measure_baseline(DeviceSession(JOB, ports()))
    huge = (ProposedCase(dimensions={"n": 2**30}),)
    assert check_proposals(DeviceSession(JOB, ports()), known, huge) == CasesResult()


def test_a_reply_becomes_such_a_plan() -> None:
    answer = {
        "shapes": [{"dimensions": [{"name": "n", "extent": 777}], "reason": "the test"}],
        "families": [{"workload": "n=4096", "family": "sorted"}],
    }
    result = accept(as_text(answer), "x", StepPayload(role="tester", round=1), StepContext(job=JOB))
    assert result.cases == ASKED
