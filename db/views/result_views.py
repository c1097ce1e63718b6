"""Response bodies of the API, read from the tables."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.engine import now
from db.repositories.candidates import CandidateRepository
from db.repositories.events import EventRepository
from db.repositories.jobs import EVERY_JOB, JobFilter, JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.repositories.workers import ALIVE_S, WorkerRepository
from db.tables import CandidateRow, TrialRow, WorkerRow
from db.views.job_facts import facts_so_far
from db.views.job_status import job_statuses
from db.views.live_view import event_view
from db.views.snapshot import elapsed_s, job_baseline
from db.views.trial_points import seconds_after
from db.views.unserved_jobs import PUT_ASIDE
from warpsmith import __version__
from warpsmith.commit import commit_name
from warpsmith.domain.jobs.job import Job, Workload
from warpsmith.domain.jobs.launch_size import LaunchSize, launch_size
from warpsmith.domain.kernels.kernel import Kernel
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import Template
from warpsmith.errors import InvalidInput
from warpsmith.http_models import (
    CandidateList,
    CandidateView,
    DispatchEntry,
    DispatchLaunch,
    EventPage,
    JobPage,
    JobResult,
    RejectionCount,
    TrialPage,
    TrialView,
    WorkerList,
    WorkerView,
)
from warpsmith.source.tree.published_source import published_source
from warpsmith.tuning.decisions.task_history import faults_in, ideas_in
from warpsmith.tuning.decisions.withdrawals import standing, verifications
from warpsmith.tuning.tasks import BaselineResult, Choice, VerifyResult

_NO_BASELINE: dict[str, Any] = {
    **dict.fromkeys(("device", "driver", "architecture", "compiler"), ""),
    "baseline": (),
    "aa_width": None,
    "limits": None,
}
_NOT_VERIFIED: dict[str, Any] = {"speedup": None, "comparisons": (), "no_gain": (), "between": ()}
DRAINING = "it was told to end what it has begun, and to go"


def job_page(
    session: Session, after: str | None = None, limit: int = 50, only: JobFilter = EVERY_JOB
) -> JobPage:
    """Jobs, newest first.

    Raises:
        InvalidInput: no job has the id `after`.
    """
    jobs = JobRepository(session)
    if after is not None and not jobs.has(after):
        raise InvalidInput(
            "query.after", f"{after!r} is no `next` of a page; leave it out for the first page"
        )
    rows = jobs.page(after, limit + 1, only)
    shown = rows[:limit]
    more = shown[-1].id if len(rows) > limit else None
    return JobPage(items=tuple(job_statuses(session, [row.id for row in shown])), next=more)


def trial_page(session: Session, job_id: str, after: int | None = None, limit: int = 100) -> TrialPage:
    """Trials of a job in the order of proposal.

    Raises:
        NotFound: no job has that id.
        InvalidInput: the job has no trial `after`.
    """
    job = JobRepository(session).get(job_id)
    if after is not None and not TrialRepository(session).has(job_id, after):
        raise InvalidInput("query.after", f"{after} is no `next` of a page; leave it out for the first page")
    rounds = {c.id: c.round for c in CandidateRepository(session).of_job(job_id)}
    rows = TrialRepository(session).page(job_id, after, limit + 1)
    shown = rows[:limit]
    items = tuple(_trial(t, rounds[t.candidate_id], job.started_at) for t in shown)
    return TrialPage(items=items, next=shown[-1].number if len(rows) > limit else None)


def trial_view(session: Session, job_id: str, number: int) -> TrialView:
    """The view of a trial of a job.

    Raises:
        NotFound: no job has that id, or the job has no trial of that number.
    """
    job = JobRepository(session).get(job_id)
    row = TrialRepository(session).get(job_id, number)
    return _trial(row, CandidateRepository(session).get(row.candidate_id).round, job.started_at)


def _trial(row: TrialRow, round_: int, started_at: datetime | None) -> TrialView:
    return TrialView(
        number=row.number,
        candidate=row.candidate_id,
        round=round_,
        configuration=row.configuration,
        state=row.state,
        outcome=row.outcome,
        seconds=row.seconds,
        at_s=seconds_after(started_at, row.finished_at),
        reused=row.reused,
    )


def event_page(session: Session, job_id: str, after: int = 0, limit: int = 100) -> EventPage:
    """Events of a job, oldest first.

    Raises:
        NotFound: no job has that id.
    """
    JobRepository(session).get(job_id)
    rows = EventRepository(session).page(job_id, after, limit + 1)
    shown = rows[:limit]
    items = tuple(event_view(e) for e in shown)
    return EventPage(items=items, next=shown[-1].id if len(rows) > limit else None)


def fleet_job_page(session: Session, after: str | None, limit: int, only: JobFilter) -> JobPage:
    """`job_page` in a session that is bound to no tenant, with the tenant of every job."""
    page = job_page(session, after, limit, only)
    tenants = {row.id: row.tenant for row in JobRepository(session).page(after, limit, only)}
    items = tuple(s.model_copy(update={"tenant": tenants.get(s.id)}) for s in page.items)
    return page.model_copy(update={"items": items})


def candidate_list(session: Session, job_id: str) -> CandidateList:
    """All candidates of a job.

    Raises:
        NotFound: no job has that id.
    """
    JobRepository(session).get(job_id)
    rows = CandidateRepository(session).of_job(job_id, with_templates=True)
    ideas = ideas_in(TaskRepository(session).of_job(job_id))
    return CandidateList(items=tuple(_candidate(row, ideas) for row in rows))


def worker_list(session: Session) -> WorkerList:
    """All workers seen recently."""
    limit = now(session) - timedelta(seconds=ALIVE_S)
    return WorkerList(
        items=tuple(
            WorkerView(
                id=w.id,
                hostname=w.hostname,
                version=w.version,
                queues=w.queues,
                devices=tuple(sorted({d.device_class for d in w.devices})),
                unavailable=_unavailable(w),
                compile_slots=w.compile_slots,
                last_seen=w.last_seen,
                alive=w.last_seen > limit,
            )
            for w in WorkerRepository(session).seen_lately()
        )
    )


def _unavailable(worker: WorkerRow) -> dict[str, str]:
    """Capabilities that a worker lacks, with reasons: back ends, faulty devices, everything while it
    drains."""
    faults = {uid: f"{PUT_ASIDE}{fault}" for uid, fault in worker.device_faults.items()}
    return {**worker.unavailable, **faults, **({"drain": DRAINING} if worker.draining else {})}


def job_result(session: Session, job_id: str) -> JobResult | None:
    """The evidence; None before the job has ended.

    Raises:
        NotFound: no job has that id.
    """
    row = JobRepository(session).get(job_id, with_spec=True)
    if not row.state.is_terminal:
        return None
    baseline = job_baseline(session, job_id)
    candidates = CandidateRepository(session).of_job(job_id, with_templates=True)
    tasks = TaskRepository(session).of_job(job_id)
    verify = standing(verifications(tasks))
    ideas = ideas_in(tasks)
    query = select(func.sum(TrialRow.seconds), func.count().filter(TrialRow.reused))
    busy_s, reused = session.execute(query.where(TrialRow.job_id == job_id)).one()
    cut_short = TrialRepository(session).cut_short(job_id)
    return JobResult(
        id=row.id,
        job=row.spec,
        state=row.state,
        detail=row.detail,
        reason=row.reason,
        device_class=row.device_class or "",
        dispatch=_dispatch(row.spec, baseline, verify, candidates),
        trials_measured=row.trials_done - row.trials_rejected - cut_short,
        trials_cut_short=cut_short,
        trials_rejected=row.trials_rejected,
        trials_reused=reused,
        trials_per_second=row.trials_done / busy_s if busy_s else 0.0,
        rejections=tuple(rejections(session, job_id)),
        seconds=elapsed_s(session, row),
        finished_at=row.finished_at,
        candidates=tuple(_candidate(c, ideas) for c in candidates),
        rule_faults=faults_in(t.result for t in tasks),
        facts=facts_so_far(session, row.spec, baseline, candidates),
        warpsmith_version=__version__,
        warpsmith_commit=commit_name(),
        **_baseline_fields(baseline),
        **(_NOT_VERIFIED if verify is None else {name: getattr(verify, name) for name in _NOT_VERIFIED}),
    )


def _baseline_fields(baseline: BaselineResult | None) -> dict[str, Any]:
    """Fields of a `JobResult` that the baseline gives."""
    if baseline is None:
        return _NO_BASELINE
    device = baseline.device
    return {
        "baseline": baseline.timings,
        "aa_width": baseline.aa_width,
        "device": device.name,
        "driver": device.driver,
        "architecture": device.architecture,
        "limits": device.limits,
        "compiler": baseline.facts.compiler if baseline.facts else "",
    }


def _candidate(row: CandidateRow, ideas: Mapping[str, str]) -> CandidateView:
    return CandidateView(
        id=row.id,
        round=row.round,
        parent=row.parent,
        state=row.state,
        agent_step=row.made_by,
        idea=ideas.get(row.made_by, ""),
        applied=row.template.applied,
        declined=tuple(map(str, row.declined)),
        space=row.template.space,
        feasible=row.feasible,
        source=row.template.kernel.text,
        entry=row.template.kernel.entry,
    )


def rejections(session: Session, job_id: str) -> list[RejectionCount]:
    """Rejected configurations of a job, by stage and reason."""
    found = []
    for group in TrialRepository(session).rejections(job_id):
        outcome = group.first.outcome
        assert isinstance(outcome, Rejected)
        found.append(
            RejectionCount(
                stage=outcome.stage.value,
                reason=outcome.reason,
                count=group.count,
                example=group.first.configuration,
            )
        )
    return found


def _dispatch(
    job: Job,
    baseline: BaselineResult | None,
    verify: VerifyResult | None,
    candidates: Sequence[CandidateRow],
) -> tuple[DispatchEntry, ...]:
    if baseline is None or verify is None:
        return ()
    templates = {c.id: c.template for c in candidates}
    workloads = {w.key: w for w in job.workloads}
    return tuple(
        _entry(job, baseline, workloads[choice.workload], choice, templates) for choice in verify.choices
    )


def _entry(
    job: Job,
    baseline: BaselineResult,
    workload: Workload,
    choice: Choice,
    templates: dict[str, Template],
) -> DispatchEntry:
    if choice.candidate is None or choice.configuration is None:
        kernel = Template(kernel=job.kernel, space=job.space).configured(job.space.defaults)
        source = None
    else:
        kernel = templates[choice.candidate].configured(choice.configuration)
        source = published_source(kernel, job.kernel.text)
    size = launch_size(kernel, workload, baseline.device)
    return DispatchEntry(
        workload=workload.key,
        configuration=choice.configuration,
        candidate=choice.candidate,
        source=source,
        entry=kernel.kernel.entry,
        grid=size.grid,
        block=size.block,
        shared_bytes=size.shared_bytes,
        local_bytes=size.local_bytes,
        launch=kernel.kernel.launch,
        local_arguments=kernel.kernel.of_step(0).local_arguments,
        launches=tuple(_launches(kernel.kernel, size)),
        scratch_bytes=size.scratch_bytes,
        scratch_arguments=kernel.kernel.scratch,
        speedups=choice.speedups,
        searched=choice.searched,
    )


def _launches(kernel: Kernel, size: LaunchSize) -> Iterator[DispatchLaunch]:
    """The launches of a sequence; none of a single launch."""
    for n, (step, numbers) in enumerate(zip(kernel.launches, size.steps, strict=False)):
        yield DispatchLaunch(
            entry=step.entry,
            arguments=step.arguments,
            grid=numbers.grid,
            block=numbers.block,
            shared_bytes=numbers.shared_bytes,
            local_bytes=numbers.local_bytes,
            launch=step.launch,
            local_arguments=kernel.of_step(n).local_arguments,
        )
