"""What one candidate found is where the search of the next one begins."""

import pytest

import worker.works.agent_step
from agents.context import StepContext
from agents.providers.steps import Panel
from db.repositories.candidates import CandidateRepository
from db.repositories.trials import TrialRepository
from tests.worker.fake_pool import as_it_is
from tests.worker.test_execute import context, handle_all, submit
from warpsmith.domain.templates.space import Parameter, Space
from warpsmith.domain.templates.template import Template
from warpsmith.search.searchers.warm_starts import starts_from
from warpsmith.testing.jobs import scale_job
from warpsmith.tuning.tasks import StepPayload, StepResult
from worker.device.process_context import Context

__all__ = ["context"]


def two_templates(payload: StepPayload, context: StepContext, panel: Panel | None = None) -> StepResult:
    """The second round's template has one parameter more."""
    if payload.round == 1:
        return as_it_is(payload, context, panel)
    kernel, parameters = context.job.kernel, context.job.space.parameters
    space = Space(parameters=(*parameters, Parameter(name="MORE", values=(1, 2))))
    return StepResult(provider="rules", template=Template(kernel=kernel, space=space))


def test_a_later_candidate_starts_from_what_its_parent_found(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.works.agent_step, "run_step", two_templates)
    job_id = submit(context.database, scale_job(budget={"rounds": 2, "trials": 26, "seconds": 600}))
    handle_all(context)
    with context.database.read() as session:
        first, second = CandidateRepository(session).of_job(job_id, with_templates=True)
        before = [(t.configuration, t.objective) for t in TrialRepository(session).finished(first.id)]
        after = [t.configuration for t in TrialRepository(session).finished(second.id)]
        assert after[0] == second.template.space.defaults, "the gate"
        starts = [{**c, "MORE": 1} for c in starts_from([before])]
        wanted = [c for c in starts if c != after[0]]
        assert len(wanted) >= 3
        assert after[1 : 1 + len(wanted)] == wanted
