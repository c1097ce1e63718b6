"""Alembic's environment: runs on the connection given by `db.migrate`, for our tables only."""

from alembic import context

from db.migrate import OPTIONS

context.configure(connection=context.config.attributes["connection"], **OPTIONS)
context.run_migrations()
