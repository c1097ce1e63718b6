"""The database's file is for its user alone, and making it so gives up no lock of SQLite."""

import fcntl
import subprocess
import sys
from pathlib import Path

from warpsmith.system.own_files import own_file

TRY = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(3)
"""


def test_a_lock_of_this_process_stays(tmp_path: Path) -> None:
    path = tmp_path / "database"
    own_file(path)
    path.chmod(0o644)
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        own_file(path)
        tried = subprocess.run([sys.executable, "-c", TRY, str(path)], check=False)
        assert tried.returncode == 3
    assert path.stat().st_mode & 0o777 == 0o600
