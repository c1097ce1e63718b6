"""Admission of a further job: the budgets of its key, and the length of the queue."""

import math

from sqlalchemy.orm import Session

from api.requests.auth import Caller
from api.requests.problems import QueueFull, TooMany
from db.repositories.admission import MINUTE_S, Admission, Used
from warpsmith.domain.jobs.job import Job
from warpsmith.settings import Settings

OPEN_AGAIN_S = 30.0
BUDGET_AGAIN_S = 3600.0


def admit(session: Session, caller: Caller, job: Job, settings: Settings) -> None:
    """Check that the job is within its limits; the check holds until this transaction ends.

    Raises:
        TooMany: the key has used up its budget.
        QueueFull: the service has reached its limit of open jobs.
    """
    Admission(session).lock()
    used = admit_caller(session, caller, settings)
    if used is not None:
        _within_budget(used, caller, job, settings)


def admit_caller(session: Session, caller: Caller, settings: Settings) -> Used | None:
    """Check that the caller may submit any job now, before the job is read; returns what its key has used.

    Raises:
        TooMany: the key has used up its number of jobs.
        QueueFull: the service has reached its limit of open jobs.
    """
    admission = Admission(session)
    if admission.open_jobs() >= settings.max_open_jobs:
        words = f"{settings.max_open_jobs} jobs are open, the most that this service accepts; try again later"
        raise QueueFull(words, OPEN_AGAIN_S)
    if caller.key is None:
        return None
    limits, used = caller.limits, admission.used_by(caller.key)
    most = limits.submits_per_minute or settings.key_submits_per_minute
    if used.submitted >= most:
        raise TooMany(f"this key may submit {most} jobs a minute", math.ceil(MINUTE_S / most))
    most = limits.open_jobs or settings.key_open_jobs
    if used.open >= most:
        raise TooMany(f"this key may have {most} open jobs; wait until one has ended", OPEN_AGAIN_S)
    return used


def _within_budget(used: Used, caller: Caller, job: Job, settings: Settings) -> None:
    limits = caller.limits
    device_s = limits.device_s_per_day or settings.key_device_s_per_day
    if device_s and used.device_s + job.budget.seconds > device_s:
        left = max(0.0, device_s - used.device_s)
        words = f"this key may request {device_s:g} s of device time a day; {left:g} s are left"
        raise TooMany(words, BUDGET_AGAIN_S)
    usd = limits.usd_per_day or settings.key_usd_per_day
    if usd and used.usd + job.budget.usd > usd:
        left = max(0.0, usd - used.usd)
        words = f"this key may request {usd:g} USD a day for models; {left:.2f} are left"
        raise TooMany(words, BUDGET_AGAIN_S)
