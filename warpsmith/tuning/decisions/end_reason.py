"""The reason for a job's end, from its rows. Pure."""

from collections.abc import Iterator, Sequence

from warpsmith.domain.reason import Reason, ReasonCode
from warpsmith.domain.state import CandidateState, JobState, TaskKind, TaskState
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.outcome import MIN_CLAIM, Comparison, Verdict, margin_of
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.decisions.snapshot import CandidateSummary, JobSnapshot
from warpsmith.tuning.decisions.stopping import LEAST_SEARCH_GAIN, MOST_NOISE, at_the_floor
from warpsmith.tuning.decisions.task_history import (
    baseline_of,
    best_so_far,
    faults_of,
    is_exhausted,
    last_slice,
    last_task,
    slice_results,
    steps_of,
)
from warpsmith.tuning.decisions.time_budget import verification_s
from warpsmith.tuning.decisions.withdrawals import fault_of, standing, verifications
from warpsmith.tuning.tasks import BaselineResult, StepResult, VerifyPayload, VerifyResult, Withdrawal

DECORATION = ("lift_constants", "launch_bounds", "restrict", "fast_math")
"""Rules that do not change how a kernel works; they bring it no closer to the floor."""
MOST_QUOTED = 300
"""Characters of a refusal that are quoted."""
MOST_TRIED = 0.5
"""Share of the space below which the budget is the reason that little was tried."""


def reason_of(snapshot: JobSnapshot, state: JobState, detail: str) -> Reason | None:
    """The reason for the end of a job; None if it was cancelled.

    Args:
        state: final state of the job.
        detail: text of the decision.
    """
    if state is JobState.CANCELLED:
        return None
    search = tried(snapshot)
    code, sentence = _failed(snapshot, detail) if state is JobState.FAILED else _done(snapshot)
    faults = list(_faults(snapshot))
    if code not in (ReasonCode.TEMPLATE_FAILED, ReasonCode.KERNEL_REFUSED) and faults:
        sentence += f"; left out, because they failed: {'; '.join(faults)}"
    return Reason(code=code, sentence=sentence[:2000], search=search)


def tried(snapshot: JobSnapshot) -> str:
    """Text such as `12 of 560 configurations tried; the budget of 60 seconds is spent`; empty if none was
    tried."""
    if not snapshot.trials_done:
        return ""
    reused = f" and {snapshot.reused} reused from earlier jobs" if snapshot.reused else ""
    words = f"{snapshot.trials_done} configurations tried{reused}"
    known = [c.feasible for c in snapshot.candidates if c.feasible is not None]
    if known:
        every = max(sum(known), snapshot.trials_done + snapshot.reused)
        ids = [c.id for c in snapshot.candidates]
        sampled = any(r.sampled for i in ids for r in slice_results(snapshot.tasks, i))
        words = f"{snapshot.trials_done} of {'at least ' * sampled}{every} configurations tried{reused}"
    stopped = _spent(snapshot) or _settled(snapshot)
    return f"{words}; {stopped}" if stopped else words


def _done(snapshot: JobSnapshot) -> tuple[ReasonCode, str]:
    found = standing(verifications(snapshot.tasks))
    assert found is not None, "a job that is done was verified"
    faster = sum(c.candidate is not None for c in found.choices)
    if faster:
        words = f"{found.speedup:.2f}x: {faster} of {len(found.choices)} workloads faster than before"
        return ReasonCode.GAIN, "; ".join(filter(None, (words, _withdrawn(snapshot, found))))
    return (
        _template_failed(snapshot)
        or _all_refused(snapshot)
        or _no_rule(snapshot)
        or _floor(snapshot)
        or _lost(snapshot, found)
        or _noisy(snapshot)
        or _unfinished(snapshot)
        or _best(snapshot, found)
    )


def _failed(snapshot: JobSnapshot, detail: str) -> tuple[ReasonCode, str]:
    if any(t.state is TaskState.DEAD for t in snapshot.tasks):
        return ReasonCode.GIVEN_UP, detail
    baseline = last_task(snapshot, TaskKind.BASELINE)
    result = None if baseline is None else baseline.result
    if not isinstance(result, BaselineResult):
        return ReasonCode.GIVEN_UP, detail
    if result.refused:
        return ReasonCode.KERNEL_REFUSED, result.refused
    failed = _template_failed(snapshot)
    if failed is not None:
        return failed
    if not snapshot.trials_done:
        took = f" (the baseline took {result.seconds:.0f} s of it)" if result.seconds else ""
        spent = _spent(snapshot) or detail
        return ReasonCode.BUDGET_SPENT, f"{spent}{took} before any configuration was tried"
    return ReasonCode.TEMPLATE_FAILED, detail


def _template_failed(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    """The reason if templates were made and none passed its first check; else None."""
    made = [c for c in snapshot.candidates if _is_changed(snapshot, c)]
    failed = [c for c in made if c.state is CandidateState.REJECTED and c.id not in _fallen(snapshot)]
    faults = list(_faults(snapshot))
    if len(failed) < len(made) or not (failed or faults):
        return None
    why = "; ".join(faults)
    if not why:
        last = last_slice(snapshot, failed[-1].id)
        why = last.reason if last is not None and last.reason else "it failed its first check"
    words = "what was made of your kernel failed, so nothing but the kernel as it is was tried"
    return ReasonCode.TEMPLATE_FAILED, f"{words}; the fault is ours, not your kernel's: {why}"


def _all_refused(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    """The reason if no configuration but templates' defaults passed its checks, and at least one failed."""
    made = [c for c in snapshot.candidates if _is_changed(snapshot, c)]
    failed = sum(c.trials - c.measured for c in made)
    if not failed or any(c.measured > 1 for c in made):
        return None
    words = f"{failed} of {sum(c.trials for c in made)} configurations were refused or failed a check"
    found = (r.refusal for c in made for r in slice_results(snapshot.tasks, c.id) if r.refusal)
    why = next((f", for instance by {refusal[:MOST_QUOTED]}" for refusal in found), "")
    return (
        ReasonCode.ALL_REFUSED,
        f"{words}{why}, and no other was left to compare; see the rejections for each reason",
    )


def _no_rule(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    if any(_is_changed(snapshot, c) for c in snapshot.candidates) or snapshot.job.parameters:
        return None
    return ReasonCode.NO_RULE, f"no rule applied, so there was nothing to search{_nearest(snapshot)}"


def _floor(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    best = best_so_far(snapshot)
    words = at_the_floor(snapshot.job, baseline_of(snapshot), min(1.0, best or 1.0))
    return (ReasonCode.AT_FLOOR, f"nothing is left to gain: {words}") if words else None


def _lost(snapshot: JobSnapshot, found: VerifyResult) -> tuple[ReasonCode, str] | None:
    """The reason if the search saw more than noise and the verification did not confirm it."""
    words = _withdrawn(snapshot, found)
    if words:
        return ReasonCode.NOT_CONFIRMED, words
    best = best_so_far(snapshot)
    noise = baseline_of(snapshot).least_width
    if best is None or 1 / best < 1 + max(LEAST_SEARCH_GAIN, noise):
        return None
    seen = f"the search's best was {1 / best:.2f}x"
    if found.withdrawn:
        return ReasonCode.NOT_CONFIRMED, f"{seen}; it was withdrawn: {found.withdrawn[0]}"
    measured = max(found.comparisons, key=lambda c: c.speedup.estimate, default=None)
    if measured is None:
        return None
    noisy = measured.verdict is Verdict.NOISY and measured.aa_width > MOST_NOISE
    code = ReasonCode.TOO_NOISY if noisy else ReasonCode.NOT_CONFIRMED
    return code, f"{seen}; measured again in fresh processes it is {_interval(measured)}{_needed(measured)}"


def _withdrawn(snapshot: JobSnapshot, found: VerifyResult) -> str:
    """The loss if the best template of the search was withdrawn for a fault, and what came of mending it."""
    fallen = _fallen(snapshot)
    measured = [(c.best_objective, c) for c in snapshot.candidates if c.best_objective is not None]
    best, lost = min(measured, key=lambda one: (one[0], one[1].number), default=(1.0, None))
    if lost is None or lost.id not in fallen or best * found.speedup >= 1:
        return ""
    why = fallen[lost.id]
    words = f"the best configuration ({1 / best:.2f}x in the search) was withdrawn"
    words += f": {why.stage.value}: {why.words[:MOST_QUOTED]}"
    repairs = sum(p.role == "repairer" and p.rejected in fallen for p in steps_of(snapshot) if not p.turn)
    if not repairs:
        return words
    times = {1: "once", 2: "twice"}.get(repairs, f"{repairs} times")
    return f"{words}; repaired {times}, {found.speedup:.2f}x"


def _fallen(snapshot: JobSnapshot) -> dict[str, Withdrawal]:
    """Candidates that verifications withdrew for a fault, with the newest one."""
    known = {c.id: fault_of(snapshot.tasks, c.id) for c in snapshot.candidates}
    return {name: fault for name, fault in known.items() if fault is not None}


def _noisy(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    noise = baseline_of(snapshot).least_width
    if noise <= MOST_NOISE:
        return None
    best = best_so_far(snapshot)
    seen = "" if best is None else f"; the search's best was {1 / best:.2f}x"
    words = f"the machine is too noisy to tell: runs of your kernel differ by {noise:.0%} among themselves"
    return ReasonCode.TOO_NOISY, f"{words} (A/A){seen}"


def _unfinished(snapshot: JobSnapshot) -> tuple[ReasonCode, str] | None:
    feasible = sum(c.feasible or 0 for c in snapshot.candidates)
    spent = _spent(snapshot)
    if not spent or snapshot.trials_done + snapshot.reused >= MOST_TRIED * feasible:
        return None
    return ReasonCode.BUDGET_SPENT, f"no gain in {tried(snapshot)}"


def _best(snapshot: JobSnapshot, found: VerifyResult) -> tuple[ReasonCode, str]:
    words = f"the kernel as it is was the best of {snapshot.trials_done} configurations that were tried"
    nearest = max(found.comparisons, key=lambda c: c.speedup.estimate, default=None)
    beside = "" if nearest is None else f"; beside it the next best is {_interval(nearest)}"
    return ReasonCode.BEST_AS_IS, f"{words}{beside}{_nearest(snapshot)}"


def _is_changed(snapshot: JobSnapshot, candidate: CandidateSummary) -> bool:
    """True if a candidate is more than the user's own kernel with the user's own parameters."""
    template = _template(snapshot, candidate)
    own = snapshot.job
    if template is None:
        return False
    return bool(template.applied) or template.kernel != own.kernel or template.space != own.space


def _template(snapshot: JobSnapshot, candidate: CandidateSummary) -> Template | None:
    step = _step(snapshot, candidate)
    return None if step is None else step.template


def _step(snapshot: JobSnapshot, candidate: CandidateSummary) -> StepResult | None:
    found = next((t.result for t in snapshot.tasks if t.id == candidate.made_by), None)
    return found if isinstance(found, StepResult) else None


def _declined(snapshot: JobSnapshot) -> Sequence[DeclinedRule]:
    """Rules declined by the newest template."""
    steps = [s for c in snapshot.candidates if (s := _step(snapshot, c)) is not None]
    return steps[-1].declined if steps else ()


def _faults(snapshot: JobSnapshot) -> Iterator[str]:
    """Rules left out because their rewrite failed, with the failure."""
    return (fault.words for fault in faults_of(snapshot))


def _nearest(snapshot: JobSnapshot) -> str:
    """The first declined rule that would have changed how the kernel works."""
    left_out = {*DECORATION, *(f.rule for f in faults_of(snapshot))}
    permitted = (d for d in _declined(snapshot) if d.code is not DeclineCode.NOT_PERMITTED)
    nearest = next((d for d in permitted if d.rule not in left_out), None)
    return "" if nearest is None else f"; the nearest was {nearest}"


def _spent(snapshot: JobSnapshot) -> str:
    """The budget that ended the search; empty if none did."""
    budget = snapshot.job.budget
    if snapshot.trials_done >= budget.trials:
        return f"the budget of {budget.trials} trials is spent"
    baseline = last_task(snapshot, TaskKind.BASELINE)
    if baseline is None or not isinstance(baseline.result, BaselineResult):
        return ""
    verify = last_task(snapshot, TaskKind.VERIFY)
    left = budget.seconds - snapshot.elapsed_s
    if verify is not None and isinstance(verify.payload, VerifyPayload) and verify.payload.seconds:
        left = verify.payload.seconds  # when the search ended
    if left - verification_s(snapshot.job, baseline.result, best_so_far(snapshot)) <= 1:
        return f"the budget of {budget.seconds:g} seconds is spent"
    return ""


def _settled(snapshot: JobSnapshot) -> str:
    """Cause that ended the search before its budget; empty if every configuration was tried."""
    searched = [c for c in snapshot.candidates if c.trials]
    if any(at_the_floor(snapshot.job, baseline_of(snapshot), c.best_objective) for c in searched):
        return "the best is as fast as memory and launches of this device allow"
    ended = [c for c in searched if is_exhausted(snapshot.tasks, c.id) and c.feasible is not None]
    left = sum(c.feasible or 0 for c in ended) - sum(c.trials for c in ended)
    if left > snapshot.reused:
        return "the search expected no further gain"
    return ""


def _needed(found: Comparison) -> str:
    """Bound that the whole interval had to exceed for a claim; empty if the estimate itself is no gain."""
    margin = margin_of(found.aa_width)
    if found.speedup.estimate <= 1 + MIN_CLAIM:
        return ""
    what = "the noise of" if margin > MIN_CLAIM else "the least that is claimed on"
    return f"; all of it must exceed {1 + margin:.2f}x, {what} {found.workload}"


def _interval(found: Comparison) -> str:
    low, high = found.speedup.low, found.speedup.high
    return f"{found.speedup.estimate:.2f}x (95 % interval {low:.2f} to {high:.2f})"
