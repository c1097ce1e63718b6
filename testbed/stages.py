"""Brings a submitted job on, as workers would, through the repositories they use."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from db.engine import utc_now
from db.message_names import device_queue
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from testbed.rows import measured, rejected
from warpsmith.domain.reason import Reason, ReasonCode
from warpsmith.domain.state import JobState, TaskKind
from warpsmith.domain.templates.declined_rule import DeclineCode, DeclinedRule
from warpsmith.domain.templates.outcome import Comparison, Interval, Outcome, Stage, Verdict
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import AppliedRule, Template
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import BaselineResult, Choice, VerifyPayload, VerifyResult

LARGE, SMALL = "n=4096", "n=1001"
BEST = {"BLOCK": 256, "PER": 4}
HOSTILE = "<script>alert('x')</script>"


@dataclass(frozen=True)
class Searched:
    """A job whose search has some results."""

    job_id: str
    candidate_id: str


NO_LOOP = DeclinedRule(rule="unroll", code=DeclineCode.FORM, reason="no loop")


def searched(session: Session, job_id: str) -> Searched:
    """Baseline timed; five trials of one candidate: two measured, two rejected, one only proposed."""
    jobs = JobRepository(session)
    jobs.get(job_id).started_at = utc_now()
    jobs.pin(job_id, DEVICE.device_class)
    jobs.move(job_id, JobState.QUEUED, JobState.SEARCHING, "searching")
    jobs.set_baseline(job_id, {LARGE: 100.0, SMALL: 40.0})
    _task(session, job_id, TaskKind.BASELINE, BaselineResult(device=DEVICE, aa_width=0.004))
    job = scale_job()
    applied = (AppliedRule(rule="vector_width", detail=f"loads of {HOSTILE}", parameters=("PER",)),)
    template = Template(kernel=job.kernel, space=job.space, applied=applied)
    row = CandidateRepository(session).add(job_id, 0, 1, None, template, (NO_LOOP,), "step")
    CandidateRepository(session).set_feasible(row.id, 16)
    tried: list[Configuration] = [
        {"BLOCK": b, "PER": p} for b, p in ((64, 1), (256, 4), (32, 8), (32, 4), (128, 2))
    ]
    trials = TrialRepository(session)
    trials.propose(job_id, row.id, tried)
    outcomes: list[Outcome] = [
        measured({LARGE: 100.0, SMALL: 40.0}, 1.0),
        measured({LARGE: 50.0, SMALL: 40.0}, 0.7),
        rejected(f"y: 12 of 4096 elements differ {HOSTILE}"),
        rejected("y: 99 of 4096 elements differ <script>alert('x')</script>", Stage.CORRECTNESS),
    ]
    finished = [TrialResult(t, o, 0.5) for t, o in zip(tried, outcomes, strict=False)]
    trials.finish(job_id, row.id, None, finished)
    return Searched(job_id, row.id)


def ended(session: Session, job_id: str) -> Searched:
    """Searched, and the winner verified on the larger workload; the smaller keeps its baseline."""
    found = searched(session, job_id)
    comparison = Comparison(
        workload=LARGE,
        configuration_key="0123456789abcdef",
        baseline_us=100.0,
        best_us=50.0,
        speedup=Interval(estimate=2.0, low=1.9, high=2.1),
        verdict=Verdict.FASTER,
        cache="cold",
        pairs=12,
        aa_width=0.004,
    )
    choices = (
        Choice(workload=LARGE, candidate=found.candidate_id, configuration=BEST, speedups={LARGE: 1.9}),
        Choice(workload=SMALL),
    )
    result = VerifyResult(comparisons=(comparison,), choices=choices, speedup=2**0.5)
    _task(session, job_id, TaskKind.VERIFY, result)
    jobs = JobRepository(session)
    jobs.set_verified(job_id, result)
    jobs.move(job_id, JobState.SEARCHING, JobState.VERIFYING)
    sentence = f"1.41x: 1 of 2 workloads faster than before; {SMALL} was withdrawn"
    reason = Reason(code=ReasonCode.GAIN, sentence=sentence)
    jobs.move(job_id, JobState.VERIFYING, JobState.DONE, "verified", reason)
    return found


def failed(session: Session, job_id: str) -> None:
    """Ended at its baseline: the kernel is refused."""
    jobs = JobRepository(session)
    jobs.get(job_id).started_at = utc_now()
    jobs.pin(job_id, DEVICE.device_class)
    jobs.move(job_id, JobState.QUEUED, JobState.BASELINE)
    refused = f"y: 12 of 4096 elements differ {HOSTILE}"
    _task(session, job_id, TaskKind.BASELINE, BaselineResult(device=DEVICE, refused=refused))
    reason = Reason(code=ReasonCode.KERNEL_REFUSED, sentence=refused)
    jobs.move(job_id, JobState.BASELINE, JobState.FAILED, refused, reason)


def _task(session: Session, job_id: str, kind: TaskKind, result: BaselineResult | VerifyResult) -> None:
    tasks = TaskRepository(session)
    payload = VerifyPayload() if kind is TaskKind.VERIFY else None
    task = tasks.enqueue(job_id, kind, device_queue(DEVICE.device_class), payload)
    claimed = tasks.claim(task.id, "worker", 60)
    assert claimed is not None and claimed.lease_token is not None
    tasks.finish(task.id, claimed.lease_token, result)
