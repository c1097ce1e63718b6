"""A pool that writes down what it finds, and ends as told: `python -m tests.worker.told_pool FILE STATUS`."""

import os
import sys
import time
from pathlib import Path

from warpsmith.processes.parent_death import end_with_parent

TOLD = "TEST_TOLD"


def main(arguments: list[str] | None = None) -> None:
    """Write parent, working folder and what the environment says; then end, or stay without a status."""
    end_with_parent()
    file, status = sys.argv[1:] if arguments is None else arguments
    found = f"{os.getppid()} {Path.cwd()} {os.environ[TOLD]} {os.environ['OPENBLAS_NUM_THREADS']}"
    written = Path(f"{file}.new")
    written.write_text(found)
    written.rename(file)
    if status:
        sys.exit(int(status))
    time.sleep(3600)


if __name__ == "__main__":
    main()
