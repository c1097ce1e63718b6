"""What becomes of a job whose template fails for rules of ours: `decide` leaves them out, one by one."""

from testbed.job_in_memory import Rows, steps
from warpsmith.domain.jobs.job import Budget
from warpsmith.domain.state import JobState, SliceEnd
from warpsmith.domain.templates.outcome import Stage
from warpsmith.domain.templates.template import RuleFault
from warpsmith.tuning.decisions.decide import MAX_REPAIRS, decide
from warpsmith.tuning.decisions.snapshot import SetJobState
from warpsmith.tuning.tasks import SlicePayload, SliceResult


def fault(rule: str) -> RuleFault:
    return RuleFault(rule=rule, stage=Stage.COMPILE, reason="error: no\nand more")


def failed(fault: RuleFault) -> SliceResult:
    reason = "compile: error: no"
    return SliceResult(trials=1, ended_by=SliceEnd.REJECTED, reason=reason, faults=(fault,))


def details(rows: Rows) -> list[str]:
    """What the job says, to its end."""
    said: list[str] = []
    while not rows.snapshot.state.is_terminal:
        for action in decide(rows.snapshot):
            said += [action.detail] if isinstance(action, SetJobState) else []
            rows.apply(action)
    return said


def test_a_rule_at_fault_costs_itself_and_no_repair() -> None:
    bad = ["unroll", "restrict", "fast_math", "block_size"]

    def slice_(rows: Rows, payload: SlicePayload) -> SliceResult:
        number = int(payload.candidate[1:])
        if number >= len(bad):
            return SliceResult(trials=payload.trials)
        return SliceResult(
            trials=1, ended_by=SliceEnd.REJECTED, reason="compile: error: no", faults=(fault(bad[number]),)
        )

    rows = Rows(Budget(trials=50), slice=slice_)
    said = details(rows)
    assert rows.snapshot.state is JobState.DONE
    mended = [s for s in steps(rows.snapshot) if s.role == "repairer"]
    assert [s.attempt for s in mended] == [0, 0, 0, 0]
    assert [[f.rule for f in s.faults] for s in mended] == [bad[: n + 1] for n in range(4)]
    assert "restrict: our rewrite did not compile: error: no" in mended[1].failure
    assert any("mending a template of ours; unroll: our rewrite did not compile" in s for s in said)


def test_a_rule_that_is_at_fault_again_and_again_ends() -> None:
    def slice_(rows: Rows, payload: SlicePayload) -> SliceResult:
        return SliceResult(
            trials=1, ended_by=SliceEnd.REJECTED, reason="compile: error: no", faults=(fault("restrict"),)
        )

    rows = Rows(Budget(trials=50), slice=slice_)
    assert rows.run().state is JobState.FAILED
    assert len(rows.snapshot.candidates) == MAX_REPAIRS + 2


def test_later_templates_know_which_rules_were_at_fault() -> None:
    def slice_(rows: Rows, payload: SlicePayload) -> SliceResult:
        if payload.candidate == "c0":
            return SliceResult(
                trials=1, ended_by=SliceEnd.REJECTED, reason="compile: error: no", faults=(fault("unroll"),)
            )
        return SliceResult(trials=7)

    end = Rows(Budget(trials=50, rounds=2), slice=slice_).run()
    templaters = [s for s in steps(end) if s.role == "templater"]
    assert [[f.rule for f in s.faults] for s in templaters] == [[], ["unroll"]]
