"""Tokens of prompts that a model's server had kept, or keeps from now on: they have prices of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_NAMES = ("cached_tokens", "written_tokens")


def upgrade() -> None:
    """Forward."""
    for name in _NAMES:
        op.add_column("agent_step", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Back."""
    for name in _NAMES:
        op.drop_column("agent_step", name)
