"""The next actions of a job, as a pure function of its rows."""

from warpsmith.domain.jobs.job import RULES, Strategy
from warpsmith.domain.state import CandidateState, JobState, SliceEnd, TaskKind
from warpsmith.tuning.decisions.device_waits import given_up, pin
from warpsmith.tuning.decisions.ideas import gainless, ideas_wanted, next_idea
from warpsmith.tuning.decisions.shares import (
    budget_spent,
    parents,
    rounds,
    seconds_left,
    trial_share,
    unopened,
)
from warpsmith.tuning.decisions.snapshot import (
    MEASURING,
    Action,
    AddCandidate,
    CandidateSummary,
    JobSnapshot,
    SetCandidate,
    SetJobState,
    StartTask,
    TaskView,
    apply,
)
from warpsmith.tuning.decisions.stopping import at_the_floor
from warpsmith.tuning.decisions.successive_halving import Share, halving_of, rules_question
from warpsmith.tuning.decisions.task_history import (
    baseline_of,
    best_so_far,
    faults_of,
    is_exhausted,
    is_fatal,
    is_spent,
    last_slice,
    last_task,
    mending,
    slice_results,
    steps_of,
    to_profile,
)
from warpsmith.tuning.decisions.time_budget import first_batch_s
from warpsmith.tuning.decisions.tool_turns import use_tools, with_tools
from warpsmith.tuning.decisions.withdrawals import fault_of, lost_best, standing, verifications
from warpsmith.tuning.tasks import (
    BaselinePayload,
    BaselineResult,
    CasesPayload,
    ProfilePayload,
    Result,
    SliceBasis,
    SlicePayload,
    StepPayload,
    StepResult,
    VerifyPayload,
    VerifyResult,
    Withdrawal,
)

MAX_REPAIRS = 2
"""Number of rejected templates, without a faulty rule found, after which a round is given up."""
LEAST_MENDED_TRIALS = 2
"""Trials without which no withdrawn template is mended: its defaults, and the best that it had."""


def decide(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """The next actions; none while a task is open or the job has ended.

    The way of a job: baseline, test plan; then in every round, from each of its parents, profile and plan,
    and for each of the planner's ideas template, region, gate and search; in the end the winners are
    verified. If that withdraws the best template and the budget allows, the template is mended, searched and
    verified again.

    Applying the actions and asking again with the new state leads on until the job ends. Asking
    twice about the same state gives the same answer.
    """
    if snapshot.state.is_terminal:
        return ()
    if snapshot.device_class is None:
        return pin(snapshot)
    dead = next((t for t in snapshot.tasks if is_fatal(t)), None)
    if dead is not None and verifications(snapshot.tasks):
        return _done(snapshot)
    if dead is not None:
        return (SetJobState(JobState.FAILED, f"{dead.kind.value} was given up: {dead.error}"),)
    if any(t.is_open for t in snapshot.tasks):
        return given_up(snapshot) or _widen(snapshot)
    baseline = last_task(snapshot, TaskKind.BASELINE)
    if baseline is None:
        return (SetJobState(JobState.BASELINE, MEASURING), StartTask(BaselinePayload()))
    assert isinstance(baseline.result, BaselineResult)
    if baseline.result.refused:
        return (SetJobState(JobState.FAILED, baseline.result.refused),)
    return _after_baseline(snapshot)


def _after_baseline(snapshot: JobSnapshot) -> tuple[Action, ...]:
    verify = last_task(snapshot, TaskKind.VERIFY)
    if verify is not None and verify is snapshot.tasks[-1]:
        return _after_verification(snapshot, verify)
    searching = next((c for c in snapshot.candidates if c.state is CandidateState.SEARCHING), None)
    if searching is not None:
        return _search(snapshot, searching)
    newest = max(snapshot.candidates, key=lambda c: c.number, default=None)
    step = last_task(snapshot, TaskKind.AGENT_STEP)
    if step is None:
        if snapshot.job.strategy is Strategy.SEARCH:
            return _ask(StepPayload(role="templater", round=1))
        return _ask(StepPayload(role="tester", round=1))
    if newest is None or step.id != newest.made_by:
        return _use_step(snapshot, step)
    if newest.state is CandidateState.REJECTED:
        repair = _repair(snapshot, newest)
        if repair is not None:
            return (SetJobState(JobState.PLANNING, mending(snapshot)), repair)
    return _go_on(snapshot, "")


def _after_verification(snapshot: JobSnapshot, verify: TaskView) -> tuple[Action, ...]:
    """Mend the best template if it was withdrawn, or go on with another round; else the end."""
    lost = lost_best(snapshot)
    if lost is None or not _has_time_to_mend(snapshot, lost, verify):
        return _done(snapshot)
    rejected = SetCandidate(lost.id, CandidateState.REJECTED)
    without = apply(snapshot, rejected)
    repair = _repair(without, lost)
    if repair is not None:
        words = f"mending the best template, which was withdrawn; candidate {lost.number}"
        return (rejected, SetJobState(JobState.PLANNING, words), repair)
    more = _go_on(without, "")
    return (rejected, *more) if any(isinstance(a, StartTask) for a in more) else more


def _has_time_to_mend(snapshot: JobSnapshot, lost: CandidateSummary, verify: TaskView) -> bool:
    """True if the budget allows an answer, a search and another verification as long as these took before."""
    budget = snapshot.job.budget
    made = next(t.result for t in snapshot.tasks if t.id == lost.made_by)
    assert isinstance(made, StepResult)
    assert isinstance(verify.payload, VerifyPayload)
    left_s = budget.seconds - snapshot.elapsed_s
    took_s = (verify.payload.seconds or left_s) - left_s
    needed_s = made.latency_s + first_batch_s(snapshot.job)
    spare_s = min(seconds_left(snapshot), left_s - took_s)
    return spare_s > needed_s and budget.trials - snapshot.trials_done >= LEAST_MENDED_TRIALS


def _done(snapshot: JobSnapshot) -> tuple[Action, ...]:
    return (SetJobState(JobState.DONE, _summary(standing(verifications(snapshot.tasks)))),)


def _go_on(snapshot: JobSnapshot, why: str) -> tuple[Action, ...]:
    """The next branch of this round, the first of the next one, or the verification.

    Args:
        why: the reason why the last branch was given up; empty if it ended normally.
    """
    spent = budget_spent(snapshot) or at_the_floor(snapshot.job, baseline_of(snapshot), best_so_far(snapshot))
    if spent:
        return _finish_search(snapshot, spent)
    round_ = max((p.round for p in steps_of(snapshot)), default=1)
    question = next_idea(snapshot, round_) or rules_question(snapshot)
    if question is not None:
        return _ask(question)
    next_rung = _next_rung(snapshot, round_)
    if next_rung:
        return next_rung
    waiting = unopened(snapshot, round_)
    if waiting:
        return _open(snapshot, round_, waiting[0])
    planned = rounds(snapshot)
    if why and not any(c.round == round_ for c in snapshot.candidates):
        return _search_on(snapshot) or _finish_search(snapshot, why)
    if round_ >= planned:
        return _finish_search(
            snapshot, f"all {planned} rounds are done" if planned > 1 else "one round was asked for"
        )
    return _open(snapshot, round_ + 1, parents(snapshot, round_ + 1)[0])


def _next_rung(snapshot: JobSnapshot, round_: int) -> tuple[Action, ...]:
    """The next run in the successive halving of this round; nothing if there is none."""
    halving = halving_of(snapshot, round_)
    run = None if halving is None else halving.next_run()
    if run is None:
        return ()
    if run.share is None:
        return _resume(snapshot, run.candidate, "the better template gets the rest")
    again = SetCandidate(run.candidate.id, CandidateState.SEARCHING)
    return (again, _searching(run.candidate), _rung_slice(snapshot, run.candidate, run.share))


def _open(snapshot: JobSnapshot, round_: int, parent: str | None) -> tuple[Action, ...]:
    profile = _profile(snapshot, parent)
    return profile or _ask(StepPayload(role="profiler", round=round_, parent=parent))


def _profile(snapshot: JobSnapshot, candidate: str | None) -> tuple[Action, ...]:
    """Profile the best configuration of a candidate, if the platform can and it was not profiled yet."""
    if seconds_left(snapshot) <= 1 or not to_profile(snapshot.tasks, baseline_of(snapshot), candidate):
        return ()
    assert candidate is not None
    start = StartTask(ProfilePayload(candidate=candidate))
    return (SetJobState(JobState.PLANNING, "profiling the best so far"), start)


def _ask(payload: StepPayload) -> tuple[Action, ...]:
    detail = f"round {payload.round}: {payload.role} at work"
    return (SetJobState(JobState.PLANNING, detail), StartTask(payload))


def _use_step(snapshot: JobSnapshot, step: TaskView) -> tuple[Action, ...]:
    payload, result = step.payload, step.result
    assert isinstance(payload, StepPayload)
    assert isinstance(result, StepResult)
    role = payload.role
    if result.tool_calls:
        return use_tools(snapshot, step.id, payload, result)
    if role == "tester":
        checked = any(t.kind is TaskKind.CHECK_CASES for t in snapshot.tasks)
        if result.cases and not checked:
            check = StartTask(CasesPayload(cases=result.cases))
            return (
                SetJobState(JobState.BASELINE, "trying what the tester asks for on the kernel as it is"),
                check,
            )
        return _open(snapshot, 1, None)
    if role == "profiler":
        wanted = ideas_wanted(snapshot, payload.round)
        return _ask(
            payload.model_copy(update={"role": "planner", "profile": result.profile, "ideas": wanted})
        )
    stop = result.stop or gainless(snapshot, payload.round, result.expected_gain)
    question = next_idea(snapshot, payload.round) if role == "planner" and not stop else None
    if question is not None:
        return _ask(question)
    if stop or role == "planner":
        return _go_on(snapshot, stop or "the planner named nothing to try")
    template = result.template
    if template is None or (payload.provider == RULES and not template.applied):
        return _go_on(snapshot, f"the {role} brought no template")
    if result.ask_tuner:
        asked = {"role": "tuner", "draft": template, "declined": result.declined}
        alone = {"turn": 0, "first_turn": "", "tools": 0, "tool_seconds": 0.0}
        return _ask(payload.model_copy(update=asked | alone))
    candidate = AddCandidate(
        number=len(snapshot.candidates),
        round=payload.round,
        parent=payload.parent,
        template=template,
        declined=result.declined,
        made_by=step.id,
    )
    detail = f"round {payload.round}: searching candidate {candidate.number}"
    return (candidate, SetJobState(JobState.SEARCHING, detail))


def _search(snapshot: JobSnapshot, candidate: CandidateSummary) -> tuple[Action, ...]:
    last = last_slice(snapshot, candidate.id)
    if last is not None and last.ended_by is SliceEnd.REJECTED:
        return (SetCandidate(candidate.id, CandidateState.REJECTED),)
    left = trial_share(snapshot, candidate) - candidate.trials
    exhausted = is_exhausted(snapshot.tasks, candidate.id)
    floor = at_the_floor(snapshot.job, baseline_of(snapshot), candidate.best_objective)
    if exhausted or left <= 0 or floor or budget_spent(snapshot):
        return (SetCandidate(candidate.id, CandidateState.SEARCHED),)
    halving = halving_of(snapshot, candidate.round)
    if halving is not None and halving.is_on_rung(candidate):
        share = halving.first_rung(candidate)
        if share is None:
            return (SetCandidate(candidate.id, CandidateState.SEARCHED),)
        return (_searching(candidate), _rung_slice(snapshot, candidate, share))
    # A new template is tried on one device before it gets the others.
    if candidate.trials == 0 and min(snapshot.devices, left) > 1:
        return (_searching(candidate), _slice(snapshot, candidate, 1))
    return (_searching(candidate), *_slices(snapshot, candidate, left, min(snapshot.devices, left)))


def _searching(candidate: CandidateSummary) -> SetJobState:
    return SetJobState(JobState.SEARCHING, f"round {candidate.round}: searching candidate {candidate.number}")


def _widen(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """A further slice of the running search for every device without one; nothing else is started."""
    searching = next((c for c in snapshot.candidates if c.state is CandidateState.SEARCHING), None)
    open_ = [t.payload for t in snapshot.tasks if t.is_open]
    slices = [p for p in open_ if isinstance(p, SlicePayload) and p.shared]
    if searching is None or len(slices) < len(open_) or any(p.candidate != searching.id for p in slices):
        return ()
    share = trial_share(snapshot, searching)
    left = share - searching.trials
    # Each open slice runs one of what is left.
    count = min(snapshot.devices, left) - len(slices)
    over = is_exhausted(snapshot.tasks, searching.id)
    over = over or is_spent(snapshot.tasks, searching.id, share)
    floor = at_the_floor(snapshot.job, baseline_of(snapshot), searching.best_objective)
    if count <= 0 or over or floor or budget_spent(snapshot):
        return ()
    return _slices(snapshot, searching, left, count, beside=len(slices))


def _slices(
    snapshot: JobSnapshot, of: CandidateSummary, trials: int, count: int, *, beside: int = 0
) -> tuple[Action, ...]:
    shared = snapshot.devices > 1 and of.trials > 0
    # They have the trials between them: whoever is faster runs more.
    return (_slice(snapshot, of, trials, beside=beside, shared=shared),) * count


def _rung_slice(snapshot: JobSnapshot, of: CandidateSummary, share: Share) -> StartTask:
    whole = _slice(snapshot, of, share.trials).payload
    return StartTask(whole.model_copy(update={"seconds": share.seconds, "heat": True, "rung": share.rung}))


def _slice(
    snapshot: JobSnapshot, of: CandidateSummary, trials: int, *, beside: int = 0, shared: bool = False
) -> StartTask:
    payload = SlicePayload(
        candidate=of.id,
        trials=trials,
        seconds=seconds_left(snapshot),
        shared=shared,
        candidate_trials=of.trials + trials if shared else None,
        seen=SliceBasis(devices=snapshot.devices, beside=beside, trials=of.trials),
    )
    return StartTask(payload)


def _search_on(snapshot: JobSnapshot) -> tuple[Action, ...]:
    """The trials that agents left go to the best candidate, if its space has untried configurations."""
    best = next((p for p in parents(snapshot, snapshot.job.budget.rounds + 1) if p is not None), None)
    if best is None or not slice_results(snapshot.tasks, best):
        return ()
    candidate = next(c for c in snapshot.candidates if c.id == best)
    return _resume(snapshot, candidate, "the best candidate gets the trials that are left")


def _resume(snapshot: JobSnapshot, candidate: CandidateSummary, detail: str) -> tuple[Action, ...]:
    """Search a candidate again; nothing if it has no trials left or nothing more to try."""
    left = trial_share(snapshot, candidate) - candidate.trials
    if left <= 0 or is_exhausted(snapshot.tasks, candidate.id):
        return ()
    slices = _slices(snapshot, candidate, left, min(snapshot.devices, left))
    again = SetCandidate(candidate.id, CandidateState.SEARCHING)
    return (again, SetJobState(JobState.SEARCHING, detail), *slices)


def _finish_search(snapshot: JobSnapshot, why: str) -> tuple[Action, ...]:
    if not snapshot.trials_done and budget_spent(snapshot):
        detail = f"no configuration was tried ({why}); raise budget.seconds"
        return (SetJobState(JobState.FAILED, detail),)
    if not any(c.measured for c in snapshot.candidates):
        detail = f"no configuration passed its checks ({why}); see the rejections"
        return (SetJobState(JobState.FAILED, detail),)
    if not _is_worth_verifying(snapshot):
        return _done(snapshot)
    profile = _profile(snapshot, parents(snapshot, snapshot.job.budget.rounds + 1)[0])
    if profile:
        return profile
    seconds = max(0.001, snapshot.job.budget.seconds - snapshot.elapsed_s)
    verify = StartTask(VerifyPayload(seconds=seconds))
    return (SetJobState(JobState.VERIFYING, f"measuring winners again; {why}"), verify)


def _is_worth_verifying(snapshot: JobSnapshot) -> bool:
    """True if nothing is verified yet, or what was searched since promises more than what stands."""
    stands = standing(verifications(snapshot.tasks))
    if stands is None:
        return True
    place = max(n for n, t in enumerate(snapshot.tasks) if t.kind is TaskKind.VERIFY)
    later = {t.payload.candidate for t in snapshot.tasks[place:] if isinstance(t.payload, SlicePayload)}
    found = [c for c in snapshot.candidates if c.id in later and c.state is not CandidateState.REJECTED]
    return any(c.best_objective is not None and c.best_objective * stands.speedup < 1 for c in found)


def _repair(snapshot: JobSnapshot, newest: CandidateSummary) -> StartTask | None:
    step = next(t for t in snapshot.tasks if t.id == newest.made_by)
    made, fallen = step.payload, fault_of(snapshot.tasks, newest.id)
    assert isinstance(made, StepPayload)
    assert isinstance(step.result, StepResult)
    if fallen is not None and step.result.provider == RULES:
        return None  # they would make the same again
    faults = faults_of(snapshot)
    explained = len(faults) > len(made.faults)  # at most once a rule
    if (made.attempt >= MAX_REPAIRS and not explained) or budget_spent(snapshot):
        return None
    payload = StepPayload(
        role="repairer",
        round=newest.round,
        attempt=made.attempt + (not explained),
        parent=made.parent,
        provider=made.provider,
        plan=made.plan,
        profile=made.profile,
        idea=made.idea,
        failure="\n".join((_failure(snapshot, newest, fallen), *(f.words for f in faults))).strip(),
        faults=faults,
        rejected=newest.id,
    )
    return StartTask(with_tools(snapshot, payload))


def _failure(snapshot: JobSnapshot, candidate: CandidateSummary, fallen: Withdrawal | None) -> str:
    """The failure that a repairer has to mend, with the case of a withdrawal."""
    if fallen is None:
        last = last_slice(snapshot, candidate.id)
        return "" if last is None else last.reason
    gain = 1 / (candidate.best_objective or 1.0)
    words = f"its best configuration ({gain:.2f}x in the search) was withdrawn: {fallen}"
    return words if fallen.case is None else f"{words}\nthe case: {fallen.case}"


def _summary(result: Result | None) -> str:
    assert isinstance(result, VerifyResult)
    faster = sum(c.candidate is not None for c in result.choices)
    return f"{result.speedup:.2f}x; {faster} of {len(result.choices)} workloads faster than the baseline"
