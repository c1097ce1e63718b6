"""The compilers that the commands of `tests/unit/cli` share."""

from tests.unit.cli.conftest import _shared_pools, pools

__all__ = ["_shared_pools", "pools"]
