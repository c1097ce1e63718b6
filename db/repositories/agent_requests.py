"""Questions to external agents: asked once, answered at most once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.engine import clock, now
from db.identifiers import new_id
from db.repositories.events import EventRepository
from db.repositories.tasks import OPEN_TASK_STATES, TaskRepository
from db.tables import AgentRequestRow, TaskRow
from warpsmith.errors import NotFound

OPEN, ANSWERED, EXPIRED = "open", "answered", "expired"


class AgentRequestRepository:
    """Queries on the `agent_request` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(
        self,
        task: TaskRow,
        role: str,
        round_: int,
        instructions: str,
        question: Mapping[str, Any],
        wanted: Mapping[str, Any],
        deadline: datetime,
    ) -> AgentRequestRow:
        """A question of a step, open until its deadline."""
        row = AgentRequestRow(
            id=new_id(),
            job_id=task.job_id,
            task_id=task.id,
            role=role,
            round=round_,
            state=OPEN,
            instructions=instructions,
            question=dict(question),
            wanted=dict(wanted),
            answered_by="",
            refusals=0,
            last_refusal="",
            created_at=clock(self._session),
            deadline=deadline,
        )
        self._session.add(row)
        self._session.flush()
        EventRepository(self._session).add(task.job_id, "agent_request", {"id": row.id, "role": role})
        return row

    def has(self, request_id: str) -> bool:
        """True if a request with that id exists."""
        query = select(AgentRequestRow.id).where(AgentRequestRow.id == request_id)
        return self._session.execute(query).first() is not None

    def get(self, request_id: str) -> AgentRequestRow:
        """Return a request.

        Raises:
            NotFound: no request has that id.
        """
        row = self._session.get(AgentRequestRow, request_id, populate_existing=True)
        if row is None:
            raise NotFound(f"no agent request {request_id}")
        return row

    def of_task(self, task_id: str, *, lock: bool = False) -> AgentRequestRow | None:
        """The request of a step, if one was made; locked against answers until the transaction ends."""
        query = select(AgentRequestRow).where(AgentRequestRow.task_id == task_id)
        if lock:
            query = query.with_for_update()
        return self._session.scalars(query.execution_options(populate_existing=True)).one_or_none()

    def open(
        self, job_id: str | None = None, after: str | None = None, limit: int = 50
    ) -> Sequence[AgentRequestRow]:
        """Requests that may be answered now, oldest first, without those of ended jobs."""
        query = (
            select(AgentRequestRow)
            .join(TaskRow, TaskRow.id == AgentRequestRow.task_id)
            .where(AgentRequestRow.state == OPEN, AgentRequestRow.deadline > clock(self._session))
            .where(TaskRow.state.in_(OPEN_TASK_STATES))
            .order_by(AgentRequestRow.id)
            .limit(limit)
        )
        if job_id is not None:
            query = query.where(AgentRequestRow.job_id == job_id)
        if after is not None:
            query = query.where(AgentRequestRow.id > after)
        return self._session.scalars(query).all()

    def is_open(self, row: AgentRequestRow) -> bool:
        """True if an answer would still be accepted."""
        task = TaskRepository(self._session).get(row.task_id)
        return row.state == OPEN and row.deadline > now(self._session) and task.state in OPEN_TASK_STATES

    def answer(self, request_id: str, reply: str, by: str) -> bool:
        """Store a valid answer and wake its step; False if the request is closed."""
        values = {"state": ANSWERED, "reply": reply, "answered_by": by, "answered_at": clock(self._session)}
        task_id = self._close(request_id, values)
        if task_id is None:
            return False
        TaskRepository(self._session).wake(task_id)
        return True

    def expire(self, request_id: str) -> bool:
        """Close a request past its deadline; False if it was answered."""
        return self._close(request_id, {"state": EXPIRED}) is not None

    def refuse(self, request_id: str, why: str) -> None:
        """Record a refused answer; the request stays open."""
        query = update(AgentRequestRow).where(AgentRequestRow.id == request_id)
        values = {"refusals": AgentRequestRow.refusals + 1, "last_refusal": why[:4000]}
        self._session.execute(query.values(values))

    def _close(self, request_id: str, values: Mapping[str, object]) -> str | None:
        return self._session.execute(
            update(AgentRequestRow)
            .where(AgentRequestRow.id == request_id, AgentRequestRow.state == OPEN)
            .values(dict(values))
            .returning(AgentRequestRow.task_id)
        ).scalar_one_or_none()
