"""A rule that writes nonsense costs itself: real compilers and a real device (PoCL) say which one it was."""

import re
from collections.abc import Callable

import pytest

from testbed.fakes import ListSink
from tests.extensions.rules.test_edits import copying
from tests.unit.tuning.test_tuning_loops import Listed
from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.templates.outcome import Measured, Stage
from warpsmith.extensions.rules.analysis.draft import Declined, Draft, RuleChange
from warpsmith.extensions.rules.compiler_hints.restrict import Restrict
from warpsmith.extensions.rules.sizes.block_size import BlockSize
from warpsmith.extensions.rules.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.source.tree.syntax_tree import Edit
from warpsmith.tuning.baseline import measure_baseline
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.slice import SliceLimits, run_slice

PARAMETERS = "__global const float *x, __global float *y, const int n"
JOB = copying("opencl", PARAMETERS, "if (i < n) y[i] = 2.0f * x[i];")


Apply = Callable[[Restrict | BlockSize, Draft], Draft | Declined]


def replaced(old: str, new: str) -> Apply:
    """A rule that puts other text in the place of some, wherever that stands."""

    def apply(self: Restrict | BlockSize, draft: Draft) -> Draft | Declined:
        places = [m.start() for m in re.finditer(re.escape(old), draft.kernel.text)]
        edits = [Edit(at, at + len(old), new) for at in places]
        return draft.changed(RuleChange(self.name, "nonsense", edits=edits))

    return apply


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "new", "stage"),
    [(Restrict, "= 2.0f @", Stage.COMPILE), (BlockSize, "= 3.0f *", Stage.CORRECTNESS)],
)
def test_the_rule_at_fault_is_named_and_the_others_are_not(
    rule: type[Restrict | BlockSize],
    new: str,
    stage: Stage,
    opencl_info: DeviceInfo,
    pool: CompilePool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rule, "apply", replaced("= 2.0f *", new))
    session = DeviceSession(JOB, SessionPorts(ChildOpener(opencl_info), pool, ReferenceRunner()))
    try:
        baseline = measure_baseline(session)
        assert not baseline.refused
        template, sink = make_template(JOB).template, ListSink()
        limits = SliceLimits(seconds=300, trials=1, compile_ahead=1)
        result = run_slice(session, template, baseline, Listed([]), sink, limits)
        assert result.reason.startswith(stage.value)
        assert [(f.rule, f.stage) for f in result.faults] == [(rule.name, stage)]
        assert result.faults[0].reason
        assert result.trials == len(sink.trials) == 1, "looking for the fault is no trial"
        mended = JOB.model_copy(update={"rewrite": JOB.rewrite.model_copy(update={"deny": (rule.name,)})})
        again = run_slice(session, make_template(mended).template, baseline, Listed([]), sink, limits)
        assert again.reason == ""
        assert isinstance(sink.trials[1][1], Measured)
    finally:
        session.close()
