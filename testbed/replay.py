"""Repeats the decisions of a job from its records, with recorded replies and no model: `python -m
testbed.replay ID`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.orm import Session

from agents.context import StepContext
from agents.parsing import BadReply
from agents.providers.step_record import CannotAnswer
from agents.replies.reply_acceptance import accept
from agents.rules.provider import RulesProvider
from db.engine import open_database
from db.repositories.agent_steps import AgentStepRepository
from db.repositories.candidates import CandidateRepository
from db.repositories.jobs import JobRepository
from db.repositories.memory.lessons import LessonRepository
from db.repositories.tasks import TaskRepository
from db.repositories.trials import TrialRepository
from db.tables import AgentStepRow, CandidateRow, JobRow, TaskRow, TrialRow
from db.views.earlier_lessons import as_told
from db.views.step_facts import step_facts
from warpsmith.domain.state import JobState, TaskKind, TaskState
from warpsmith.settings import Settings
from warpsmith.tuning.decisions.decide import decide
from warpsmith.tuning.decisions.snapshot import (
    Action,
    AddCandidate,
    JobSnapshot,
    StartTask,
    apply,
    end_task,
)
from warpsmith.tuning.tasks import (
    Payload,
    SlicePayload,
    StepPayload,
    StepResult,
    ToolPayload,
    VerifyPayload,
)

MAX_DECISIONS = 10_000
REUSED = "reused by "
"""Prefix of a candidate's id for trials that other jobs had run."""


@dataclass(frozen=True)
class Replay:
    """Result of a replay."""

    candidates: int
    """Number of candidates reached again with the same template."""
    steps: int
    """Number of agent steps answered from records."""
    differences: tuple[str, ...]


def replay(
    session: Session, job_id: str, include_dirs: Mapping[str, Path], *, answers: bool = True
) -> Replay:
    """Repeat the decisions of a job, from its first row to its end.

    Args:
        include_dirs: permitted include folders by name, as at the time of the job.
        answers: False to take the results of agent steps as they were recorded, for records whose texts were
            taken out.

    Raises:
        NotFound: no job has that id.
    """
    return _Run(session, job_id, include_dirs, answers).run()


class _Run:
    def __init__(
        self, session: Session, job_id: str, include_dirs: Mapping[str, Path], answers: bool
    ) -> None:
        self._session = session
        self._answers = answers
        self._include_dirs = include_dirs
        self._job: JobRow = JobRepository(session).get(job_id, with_spec=True)
        self._tasks: Sequence[TaskRow] = TaskRepository(session).of_job(job_id)
        self._candidates: Sequence[CandidateRow] = CandidateRepository(session).of_job(
            job_id, with_templates=True
        )
        self._steps: dict[str, AgentStepRow] = {
            s.task_id: s for s in AgentStepRepository(session).of_job(job_id)
        }
        self._trials: dict[str, list[TrialRow]] = {}
        for candidate in self._candidates:
            for trial in TrialRepository(session).finished(candidate.id):
                name = f"{REUSED}{candidate.id}" if trial.reused else trial.task_id or ""
                self._trials.setdefault(name, []).append(trial)
        self._differences: list[str] = []
        self._same = 0
        self._open: list[TaskRow] = []
        """Slices that were started and have not ended."""
        classes = () if self._job.device_class is None else (self._job.device_class,)
        self._now = JobSnapshot(self._job.spec, JobState.QUEUED, None, classes, 0.0, 0, (), ())

    def run(self) -> Replay:
        """Decide until the job ends, or deviates from its records."""
        for _ in range(MAX_DECISIONS):
            actions = decide(self._look())
            if not actions or self._differences:
                break
            for action in actions:
                self._apply(action)
        if self._job.state is not JobState.CANCELLED and not self._differences:
            self._compare("the end", self._job.state, self._now.state)
            self._compare("number of tasks", len(self._tasks), len(self._now.tasks))
            self._compare("number of candidates", len(self._candidates), len(self._now.candidates))
            for row, c in zip(self._candidates, self._now.candidates, strict=False):
                recorded = row.trials, row.measured, row.best_objective
                self._compare(
                    f"candidate {c.number}, trials", recorded, (c.trials, c.measured, c.best_objective)
                )
        steps = sum(t.kind is TaskKind.AGENT_STEP for t in self._now.tasks)
        return Replay(self._same, steps, tuple(self._differences))

    def _look(self) -> JobSnapshot:
        """The snapshot of the next recorded decision.

        A decision that starts slices has recorded the number of devices, of open slices and of finished
        trials. Before any other decision all slices had ended.
        """
        place = len(self._now.tasks)
        payload = self._tasks[place].payload if place < len(self._tasks) else None
        seen = payload.seen if isinstance(payload, SlicePayload) else None
        while len(self._open) > (seen.beside if seen is not None else 0):
            if not self._end_slice():
                break
        self._now = replace(self._now, elapsed_s=self._elapsed_s())
        if seen is None or not isinstance(payload, SlicePayload):
            return self._now
        known = [
            replace(c, trials=seen.trials) if c.id == payload.candidate and seen.beside else c
            for c in self._now.candidates
        ]
        return replace(self._now, candidates=known, devices=seen.devices)

    def _end_slice(self) -> bool:
        """Apply the result of the open slice that ended first; False if none ever ended."""
        ended = [r for r in self._open if r.state is not TaskState.CANCELLED]
        if not ended:
            return False
        row = min(ended, key=lambda r: (r.finished_at is None, r.finished_at, r.number))
        self._open.remove(row)
        payload = row.payload
        assert isinstance(payload, SlicePayload), "only slices are left open"
        self._now = end_task(self._now, row.id, row.state, row.result, row.error)
        self._count(payload.candidate, self._trials.get(row.id, []))
        return True

    def _elapsed_s(self) -> float:
        """Seconds on the job's clock at the next recorded decision."""
        place = len(self._now.tasks)
        at = self._tasks[place].created_at if place < len(self._tasks) else self._job.finished_at
        if at is None or self._job.started_at is None:
            return 0.0
        waited_s = sum(task.waited_s for task in self._tasks[:place])
        return max(0.0, (at - self._job.started_at).total_seconds() - waited_s)

    def _compare(self, what: str, recorded: object, replayed: object) -> bool:
        if recorded != replayed:
            self._differences.append(f"{what}: recorded {recorded!r}, replayed {replayed!r}"[:2000])
        return recorded == replayed

    def _apply(self, action: Action) -> None:
        match action:
            case AddCandidate():
                self._add(action)
            case StartTask():
                self._start(action)
            case _:
                self._now = apply(self._now, action)

    def _add(self, action: AddCandidate) -> None:
        if action.number >= len(self._candidates):
            self._differences.append(f"candidate {action.number} is not in the records")
            return
        row = self._candidates[action.number]
        same = self._compare(f"candidate {row.number}, template", row.template, action.template)
        same &= self._compare(
            f"candidate {row.number}",
            (row.round, row.parent, row.made_by, row.declined),
            (action.round, action.parent, action.made_by, action.declined),
        )
        self._same += same
        self._now = apply(self._now, action, row.id)

    def _start(self, action: StartTask) -> None:
        place = len(self._now.tasks)
        if place >= len(self._tasks):
            self._differences.append(f"task {place} ({action.kind.value}) is not in the records")
            return
        row = self._tasks[place]
        recorded, result = row.payload, row.result
        self._compare(f"task {place}", row.kind, action.kind)
        self._compare(f"task {place}, question", recorded, _by_the_same_clock(action.payload, recorded))
        if isinstance(recorded, SlicePayload) and isinstance(action.payload, SlicePayload):
            self._open.append(row)
            self._now = apply(self._now, StartTask(recorded), row.id)
            return
        if self._answers and isinstance(recorded, StepPayload) and isinstance(result, StepResult):
            result = self._step(row, recorded, result)
        if row.state is not TaskState.CANCELLED:
            started = apply(self._now, action if recorded is None else StartTask(recorded), row.id)
            self._now = end_task(started, row.id, row.state, result, row.error)

    def _step(self, row: TaskRow, payload: StepPayload, recorded: StepResult) -> StepResult:
        """The result of a step from its recorded reply; the rules, which need none, are run again."""
        job = JobRepository(self._session).get(row.job_id, with_spec=True)
        lessons = LessonRepository(self._session).of_jobs(job.spec.kernel, recorded.earlier)
        earlier = as_told(job, lessons)
        facts = step_facts(self._session, row.job_id, payload, before=row.number, earlier=earlier)
        context = StepContext.of(facts, self._include_dirs)
        step = self._steps.get(row.id)
        if step is None:
            self._differences.append(f"task {row.number}: no record of this agent step")
            return recorded
        try:
            if step.provider == "rules":
                result = RulesProvider().answer(payload, context)
            else:
                result = accept(step.reply, step.provider, payload, context)
        except (BadReply, CannotAnswer) as exc:
            self._differences.append(f"task {row.number}: {exc}")
            return recorded
        for field in ("provider", "plan", "stop", "expected_gain", "ideas", "profile", "cases", "tool_calls"):
            said = getattr(recorded, field), getattr(result, field)
            self._compare(f"task {row.number}, {field}", *said)
        return result.model_copy(update={"ask_tuner": recorded.ask_tuner})

    def _count(self, candidate: str, trials: Sequence[TrialRow]) -> None:
        objectives = [t.objective for t in trials if t.objective is not None]
        # Results of other jobs were taken over before the candidate's first slice, and cost no trial.
        known = self._trials.pop(f"{REUSED}{candidate}", [])
        objectives += [t.objective for t in known if t.objective is not None]
        counted = []
        for c in self._now.candidates:
            if c.id != candidate:
                counted.append(c)
                continue
            values = [*objectives, *([] if c.best_objective is None else [c.best_objective])]
            best = min(values, default=None)
            done, measured = c.trials + len(trials), c.measured + len(objectives)
            counted.append(replace(c, trials=done, measured=measured, best_objective=best))
        done = self._now.trials_done + len(trials)
        self._now = replace(self._now, candidates=counted, trials_done=done)


def _by_the_same_clock(replayed: Payload | None, recorded: Payload | None) -> Payload | None:
    """The payload with the recorded seconds, since the clock advanced a little before the row was written."""
    for kind in (SlicePayload, ToolPayload, VerifyPayload):
        if isinstance(replayed, kind) and isinstance(recorded, kind):
            return replayed.model_copy(update={"seconds": recorded.seconds})
    return replayed


def main(arguments: list[str] | None = None) -> int:
    """Command line, for the database of the settings."""
    parser = argparse.ArgumentParser(prog="python -m testbed.replay", description=__doc__)
    parser.add_argument("job")
    options = parser.parse_args(arguments)
    settings = Settings()
    database = open_database(settings)
    try:
        with database.read() as session:
            found = replay(session, options.job, settings.permitted_includes())
    finally:
        database.dispose()
    for difference in found.differences:
        sys.stdout.write(f"{difference}\n")
    steps = f"{found.steps} agent steps answered from records, no model called"
    sys.stdout.write(f"{found.candidates} candidates reached again; {steps}\n")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
