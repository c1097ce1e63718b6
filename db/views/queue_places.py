"""Places in their queues of jobs that wait for their first turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from db.message_names import DEVICE_PREFIX
from db.tables import TaskRow
from warpsmith.domain.state import TaskState

_TASK = TaskRow.__table__


@dataclass(frozen=True)
class QueuePlace:
    """A job's place in a queue."""

    queue: str
    number: int
    """1 is the next. If tenants take turns, the worst case: as if all others went first."""

    @property
    def words(self) -> str:
        """Text such as `queued: 3rd for gpu.<class>`."""
        last = self.number % 10
        teen = self.number // 10 % 10 == 1
        ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
        return f"queued: {self.number}{ending} for {self.queue}"


def places(connection: Connection, job_ids: Sequence[str]) -> dict[str, QueuePlace]:
    """Places of those jobs whose first task for a device waits in its queue; see `Turns.next`."""
    if not job_ids:
        return {}
    waiting = (_TASK.c.state == TaskState.QUEUED, _TASK.c.queue.startswith(DEVICE_PREFIX))
    begins = _TASK.c.number == 0
    longest = case((begins, _TASK.c.job_id), else_=_TASK.c.id)
    order = (_TASK.c.attempt == 0, _TASK.c.priority.desc(), begins, longest)
    rank = func.row_number().over(partition_by=(_TASK.c.queue, _TASK.c.tenant), order_by=order)
    columns = (_TASK.c.job_id, _TASK.c.queue, _TASK.c.tenant, _TASK.c.number)
    ranked = select(*columns, rank.label("rank")).where(*waiting).subquery()
    mine = select(ranked).where(ranked.c.job_id.in_(job_ids), ranked.c.number == 0)
    found = connection.execute(mine).all()
    queues = {row.queue for row in found}
    if not queues:
        return {}
    counts = select(_TASK.c.queue, _TASK.c.tenant, func.count().label("count"))
    counts = counts.where(*waiting, _TASK.c.queue.in_(queues)).group_by(_TASK.c.queue, _TASK.c.tenant)
    others = connection.execute(counts).all()
    return {
        row.job_id: QueuePlace(
            row.queue,
            row.rank
            + sum(
                min(other.count, row.rank)
                for other in others
                if other.queue == row.queue and other.tenant != row.tenant
            ),
        )
        for row in found
    }
