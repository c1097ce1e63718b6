"""Sessions bound to a tenant: all their queries see only that tenant's rows."""

from functools import lru_cache
from typing import Any

from sqlalchemy import event, exists
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker, with_loader_criteria

from db.tables import Base, JobRow

TENANT = "tenant"
"""Name in `Session.info`."""


def watch(sessions: sessionmaker[Session]) -> None:
    """Bind the sessions of this maker to their tenant, if they have one."""
    event.listen(sessions, "do_orm_execute", _keep_to_tenant)


def _keep_to_tenant(state: ORMExecuteState) -> None:
    tenant = state.session.info.get(TENANT)
    if tenant is not None and (state.is_select or state.is_update or state.is_delete):
        state.statement = state.statement.options(*_criteria(tenant))


@lru_cache(maxsize=256)
def _criteria(tenant: str) -> tuple[Any, ...]:
    """Conditions on the tables that belong to a tenant, directly or through its job."""
    job = JobRow.__table__.alias()  # else a query of jobs would take it for its own
    found = []
    for mapper in Base.registry.mappers:
        row, columns = mapper.class_, mapper.local_table.c
        if "tenant" in columns and "job_id" not in columns and row is not JobRow:
            continue
        if "tenant" in columns:
            condition = row.tenant == tenant
        elif "job_id" in columns:
            condition = exists().where(job.c.id == row.job_id, job.c.tenant == tenant)
        else:
            continue
        found.append(with_loader_criteria(row, condition, include_aliases=True))
    return tuple(found)
