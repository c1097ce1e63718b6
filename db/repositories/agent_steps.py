"""Complete records of agent steps."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.engine import clock
from db.tables import AgentStepRow
from warpsmith.tuning.tasks import StepPayload, StepResult


class AgentStepRepository:
    """Appends and reads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, job_id: str, task_id: str, payload: StepPayload, result: StepResult) -> None:
        """Record a call of a role, with its payload and result."""
        self._session.add(
            AgentStepRow(
                job_id=job_id,
                task_id=task_id,
                role=payload.role,
                round=payload.round,
                provider=result.provider,
                model=result.model[:200],
                fallback=result.fallback,
                notes="\n".join(n.replace("\n", " ") for n in result.notes),
                calls=result.calls,
                prompt=result.prompt,
                reply=result.reply,
                tokens=result.tokens,
                cached_tokens=result.cached_tokens,
                written_tokens=result.written_tokens,
                usd=result.usd,
                latency_s=result.latency_s,
                created_at=clock(self._session),
            )
        )

    def of_job(self, job_id: str) -> Sequence[AgentStepRow]:
        """All steps of a job, in order."""
        query = select(AgentStepRow).where(AgentStepRow.job_id == job_id).order_by(AgentStepRow.id)
        return self._session.scalars(query).all()
