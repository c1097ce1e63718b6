"""Trials of earlier jobs that still count: same kernel, same checks, same device class, same protocol.

They are told to the searcher and may become finalists. Published figures are always measured anew.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.tables import CandidateRow, TaskRow, TrialRow
from warpsmith import __version__
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.outcome import CutShort, Measured, Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Space, allows, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.objective import costs, objective_of
from warpsmith.tuning.tasks import BaselineResult
from worker.device.process_context import Context

PROTOCOL = 1
"""Version of checking and timing; raise it when older outcomes can no longer be compared with new ones."""
NOT_JUDGED_BY = frozenset(
    {"name", "parameters", "constraints", "rewrite", "agents", "strategy", "searcher", "budget", "seed"}
)
"""Fields of a job that change which configurations are tried, but not their outcomes."""
LASTING = frozenset({Stage.COMPILE, Stage.GUARD, Stage.CORRECTNESS})
"""Stages of rejections that would occur again; others may be due to the machine or the space."""


MOST_HEADERS, MOST_HEADER_BYTES = 10_000, 256 << 20
"""Limits on an operator's include folder that is read for a key; with a larger one nothing is reused."""


def reuse_key(
    job: Job,
    template: Template,
    tenant: str,
    device_class: str,
    driver_compiler: str = "",
    include_dirs: Mapping[str, Path] | None = None,
) -> str:
    """Key that is equal for two candidates whose trials are interchangeable; empty if that is not known.

    Tenants share nothing.

    Args:
        driver_compiler: see `DeviceInfo.compiler`.
        include_dirs: the operator's include folders, whose files may change under the same name.
    """
    headers = [_digest((include_dirs or {}).get(name)) for name in template.kernel.includes]
    if not all(headers):
        return ""
    fields = job.model_dump(mode="json", exclude=set(NOT_JUDGED_BY))
    del fields["objective"]["energy"]  # measured in verification, never in a trial
    fields["workloads"] = sorted(w.key for w in job.workloads)
    compilers = [driver_compiler, template.kernel.backend.language.compiler_version()]
    kernel = template.kernel.model_dump(mode="json")
    judged = [__version__, PROTOCOL, tenant, device_class, compilers, headers, fields, kernel]
    text = json.dumps(judged, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(folder: Path | None) -> str:
    """Hash of all files of a folder; empty if it cannot be read, or is too large."""
    found, left = hashlib.sha256(), MOST_HEADER_BYTES
    try:
        files = [] if folder is None else sorted(islice(folder.rglob("*"), MOST_HEADERS + 1))
        if not 0 < len(files) <= MOST_HEADERS:
            return ""
        for path in files:
            content = path.read_bytes() if path.is_file() else b""
            left -= len(content)
            if left < 0:
                return ""
            found.update(f"{os.fsencode(path)!r} {len(content)}\n".encode() + content)
    except OSError:
        return ""
    return found.hexdigest()


def adopt_known(
    context: Context, row: TaskRow, candidate: CandidateRow, job: Job, baseline: BaselineResult
) -> int:
    """Take over known outcomes before the first trial of a candidate; returns their number."""
    within_s = context.settings.reuse_trials_s
    if within_s <= 0:
        return 0
    assert row.lease_token is not None
    with context.database.read() as session:
        device_class = JobRepository(session).get(row.job_id).device_class or ""
    compiler, folders = baseline.device.compiler, context.settings.permitted_includes()
    key = reuse_key(job, candidate.template, row.tenant, device_class, compiler, folders)
    if not key:
        return 0
    with context.database.write() as session:
        # The fence: a worker that has lost this task writes nothing.
        TaskRepository(session).renew(row.id, row.lease_token, context.settings.lease_s)
        CandidateRepository(session).set_reuse_key(candidate.id, key)
        trials = TrialRepository(session)
        kept = list(still_count(job, candidate.template.space, baseline, trials.known(key, within_s)))
        return trials.adopt(row.job_id, candidate.id, kept) if kept else 0


def still_count(
    job: Job, space: Space, baseline: BaselineResult, known: Iterable[TrialRow]
) -> Iterable[TrialResult]:
    """Known outcomes that are valid for this job; the default configuration is always run."""
    before = costs(job, baseline.timings)
    values = {p.name: {configuration_key({p.name: v}) for v in p.values} for p in space.parameters}
    default = configuration_key(space.defaults)
    for row in known:
        tried = row.configuration
        if tried.keys() != values.keys() or row.key == default or row.outcome is None:
            continue
        if any(configuration_key({name: value}) not in values[name] for name, value in tried.items()):
            continue
        scopes = [{**baseline.device.scope(), **w.scope(), **tried} for w in job.workloads]
        if any(allows(space.constraints, scope) is not None for scope in scopes):
            continue
        outcome = _as_here(job, before, row.outcome)
        if outcome is not None:
            yield TrialResult(tried, outcome, 0.0)


def _as_here(job: Job, before: Mapping[str, float], outcome: Outcome) -> Outcome | None:
    if isinstance(outcome, Rejected):
        return outcome if outcome.stage in LASTING else None
    if isinstance(outcome, CutShort):
        return None
    if {t.workload for t in outcome.timings} != {w.key for w in job.workloads}:
        return None
    if len(before) < len(job.workloads) or len(costs(job, outcome.timings)) < len(job.workloads):
        return None
    return Measured(
        timings=outcome.steady_timings,
        facts=outcome.facts,
        objective=objective_of(job, outcome.steady_timings, before),
    )
