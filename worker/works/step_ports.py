"""Database-backed ports of agent steps: the job's budget, and the request of one step."""

from agents.providers.external import Letter
from agents.providers.model_budget import Cost
from db.engine import Database, now
from db.repositories.agent_requests import OPEN, AgentRequestRepository
from db.repositories.jobs import JobRepository


class JobPurse:
    """The budget of a job. Reservations are committed before a call, so that a crash cannot lose one."""

    def __init__(self, database: Database, job_id: str) -> None:
        self._database = database
        self._job_id = job_id
        self.booked = Cost()

    def left(self) -> Cost:
        """See `agents.providers.model_budget.Purse`."""
        with self._database.read() as session:
            row = JobRepository(session).get(self._job_id, with_spec=True)
            budget = row.spec.budget
            return Cost(budget.tokens - row.tokens_used, budget.usd - row.usd_used)

    def reserve(self, cost: Cost) -> bool:
        """See `agents.providers.model_budget.Purse`."""
        with self._database.write() as session:
            reserved = JobRepository(session).reserve(self._job_id, cost.tokens, cost.usd)
        self.booked += cost if reserved else Cost()
        return reserved

    def settle(self, reserved: Cost, spent: Cost) -> None:
        """See `agents.providers.model_budget.Purse`."""
        change = spent - reserved
        with self._database.write() as session:
            JobRepository(session).spend(self._job_id, change.tokens, change.usd)
        self.booked += change


class StepMailbox:
    """The request of one step, stored in rows."""

    def __init__(self, database: Database, task_id: str) -> None:
        self._database = database
        self._task_id = task_id

    def look(self) -> Letter | None:
        """See `agents.providers.external.Mailbox`."""
        with self._database.write() as session:
            requests = AgentRequestRepository(session)
            row = requests.of_task(self._task_id, lock=True)
            if row is None:
                return None
            if row.state == OPEN and row.deadline <= now(session):
                requests.expire(row.id)
                row = requests.get(row.id)
            end = row.answered_at or row.deadline
            return Letter(
                open=row.state == OPEN,
                reply=row.reply,
                by=row.answered_by,
                waited_s=(end - row.created_at).total_seconds(),
            )
