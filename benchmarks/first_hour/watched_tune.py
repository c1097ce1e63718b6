"""`warpsmith tune` of the tree that is first on the path; every status that it shows is kept as JSON.

    PYTHONPATH=TREE python watched_tune.py STATUSES JOB OUT

Started by `jobs.py`. It is a program of its own and imports nothing beside it, since the tree may be an older
one. The first line of STATUSES says which files the packages of the tree come from; the others are statuses.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpsmith.cli import main
from warpsmith.client import Client

PACKAGES = ("warpsmith", "api", "db", "worker", "agents")


def watch(log: Path) -> None:
    """Have each status that is shown written to `log` as well."""
    wait = Client.wait

    def kept(self: Client, job_id: str, show: Callable[..., None] | None = None, **others: Any) -> Any:
        def both(status: Any) -> None:
            with log.open("a") as stream:
                stream.write(status.model_dump_json() + "\n")
            if show is not None:
                show(status)

        return wait(self, job_id, both, **others)

    Client.wait = kept  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    statuses, job, out = sys.argv[1:]
    # The folder of this program comes first on the path, and holds no package of the tree.
    found = {name: importlib.util.find_spec(name) for name in PACKAGES}
    origins = {name: "" if spec is None else str(spec.origin) for name, spec in found.items()}
    Path(statuses).write_text(json.dumps(origins) + "\n")
    watch(Path(statuses))
    main(["tune", job, "--out", out])
