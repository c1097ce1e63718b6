"""Which children run below this process, by the names that they have there."""

import os
from pathlib import Path

FORK_SERVER = "fork_server"
SERVICES = {FORK_SERVER, "postgres", "redis-server"}
"""Servers that outlive a job. Postgres starts processes of its own at any time."""


def descendants() -> dict[int, str]:
    """Living descendants of this process by id, with their names, but for the services, which stay."""
    return {pid: name for pid, (_, name) in _family().items() if name not in SERVICES}


def leaders(name: str) -> set[int]:
    """Children of that name that a fork server of this process has forked; not what these forked."""
    family = _family()
    servers = {pid for pid, (_, found) in family.items() if found == FORK_SERVER}
    return {pid for pid, (parent, found) in family.items() if found == name and parent in servers}


def _family() -> dict[int, tuple[int, str]]:
    """Parent and name of each living descendant. One look at all processes."""
    found: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(path.name)] = (int(parent), (path / "comm").read_text().strip())
        except OSError:
            continue
    ours = {os.getpid()}
    more = ours
    while more:
        more = {pid for pid, (parent, _) in found.items() if parent in ours} - ours
        ours |= more
    return {pid: found[pid] for pid in ours if pid != os.getpid()}
