"""The dashboard asks for labels and states that a filled database gives, and warns where the alerts do."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy.orm import Session

from db.engine import Database
from db.message_names import device_queue
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.remote_compilations import CompilationRepository, CompilationRequest
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository, TrialResult
from db.repositories.workers import WorkerRepository
from db.views.metrics import samples
from testbed.rows import add_candidate, add_job, add_task, measured
from tests.db.test_alerts import RULES, SERVED
from tests.db.test_dashboard import SHOWN, expressions
from warpsmith.domain.state import JobState
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.testing.jobs import DEVICE, scale_job
from warpsmith.tuning.tasks import SliceResult, StepPayload, StepResult

METRIC = re.compile(r"(warpsmith_\w+)(?:{([^}]*)})?")
PLAIN_RULE = re.compile(r"(?:increase\()?(warpsmith_\w+)(?:{[^}]*})?(?:\[\w+\]\))? (?:>|==) (\d+)")
"""A rule that compares one metric to a number."""


def _fill(session: Session) -> None:
    """Rows of everything that is counted."""
    job = add_job(session)
    _, running, done = (add_task(session, job.id) for _ in range(3))
    tasks = TaskRepository(session)
    assert tasks.claim(running.id, "w", 60) is not None
    claimed = tasks.claim(done.id, "w", 60)
    assert claimed is not None and claimed.lease_token is not None
    tasks.finish(done.id, claimed.lease_token, SliceResult(trials=1))
    candidate = add_candidate(session, job.id)
    configuration: Configuration = {"BLOCK": 32, "PER": 1}
    trials = TrialRepository(session)
    trials.propose(job.id, candidate.id, [configuration])
    finished = [TrialResult(configuration, measured({"n=4096": 2.0}, 0.5), 1.5)]
    trials.finish(job.id, candidate.id, done.id, finished)
    WorkerRepository(session).register("w", "host", 1, "0", ["control"], [DEVICE], {})
    kernel = ConfiguredKernel(kernel=scale_job().kernel)
    wanted = CompilationRequest("key", device_queue(DEVICE.device_class), kernel, DEVICE)
    CompilationRepository(session).want([wanted])
    answer = StepResult(provider="openai", tokens=70, usd=0.25, latency_s=2.0)
    AgentStepRepository(session).add(job.id, done.id, StepPayload(role="planner", round=1), answer)


@pytest.fixture
def labels(database: Database) -> Mapping[str, set[str]]:
    """Labels of every metric that a filled database gives."""
    with database.write() as session:
        _fill(session)
    with database.read() as session:
        return {sample.name: set(sample.labels) for sample in samples(session)}


def test_a_panel_asks_for_labels_that_its_metric_has(labels: Mapping[str, set[str]]) -> None:
    assert labels.keys() == SERVED
    for panel in SHOWN:
        for target in panel["targets"]:
            named = METRIC.findall(target["expr"])
            for metric, selector in named:
                assert set(re.findall(r"(\w+)(?:=|!)", selector)) <= labels[metric], panel["title"]
            groups = [set(group.split(", ")) for group in re.findall(r"by \(([^)]*)\)", target["expr"])]
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert all(group <= labels[metric] for group in groups for metric, _ in named), panel["title"]
            # Aggregation keeps the labels that it names, and no other.
            assert all(shown <= labels[metric] for metric, _ in named), panel["title"]
            assert all(shown <= group for group in groups), panel["title"]


def test_the_states_of_jobs_that_a_panel_names_are_states() -> None:
    named = [re.findall(r'state[=!]~?"([^"]*)"', e) for panel in SHOWN for e in expressions(panel)]
    states = {state for found in named for alternatives in found for state in alternatives.split("|")}
    assert states and states <= {state.value for state in JobState}


def _steps(metric: str) -> set[float]:
    """Numbers at which panels of a metric change their colour."""
    of_metric: list[dict[str, Any]] = [
        panel for panel in SHOWN if any(metric in expression for expression in expressions(panel))
    ]
    found = [panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", ()) for panel in of_metric]
    return {step["value"] for steps in found for step in steps if step["value"] is not None}


PLAIN_RULES = [rule for rule in RULES if PLAIN_RULE.fullmatch(rule["expr"])]


def test_most_rules_compare_one_metric_to_a_number() -> None:
    assert len(PLAIN_RULES) >= 5


@pytest.mark.parametrize("rule", PLAIN_RULES, ids=lambda rule: rule["alert"])
def test_a_panel_changes_its_colour_where_the_rule_warns(rule: dict[str, Any]) -> None:
    found = PLAIN_RULE.fullmatch(rule["expr"])
    assert found is not None
    metric, bound = found[1], int(found[2])
    # What is counted warns above 0 from the first on.
    assert (bound or 1) in _steps(metric)
