"""Puts faults into the product one at a time, and records which of them its cheap tests catch.

    python -m benchmarks.mutation [--only tasks] [--out FOLDER]

`faults.toml` names each fault: a text of one file, what replaces it, and the tests of that part of the
product. All of it happens in a copy of the tracked files. Each set of tests must pass without a fault first.
A fault is caught if tests fail, and not caught if all pass; anything else, such as a module that cannot be
imported, is an error.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.provenance import ROOT, plain_command, record_folder
from warpsmith.commit import commit_name

NAME = "mutation"
FAULTS = Path(__file__).with_name("faults.toml")
PATIENCE_S = 600.0
END_S = 20.0
"""Seconds in which interrupted tests may end their services."""
PASSED, FAILED = 0, 1
"""Exit statuses of pytest."""
CAUGHT, NOT_CAUGHT = "caught", "not caught"
TAIL_CHARACTERS = 2000


@dataclass(frozen=True)
class Fault:
    """A fault of one file."""

    name: str
    file: str
    """Path from the root of the tree."""
    old: str
    """Text that occurs once in the file."""
    new: str
    tests: str
    """Name of the set of tests that should catch it."""

    def put_into(self, text: str) -> str:
        """The text of the file with the fault.

        Raises:
            ValueError: the fault's text does not occur exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"fault {self.name!r}: its text occurs {count} times in {self.file}, not once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Run:
    """Outcome of a set of tests."""

    status: int | None
    """Exit status of pytest; None: it was ended for taking too long."""
    output: str
    cpu_s: float
    """Seconds of processor time, children included."""


def read_faults(path: Path = FAULTS) -> tuple[list[Fault], dict[str, list[str]]]:
    """The faults of a table, and its sets of tests by name."""
    table = tomllib.loads(path.read_text())
    return [Fault(**row) for row in table["fault"]], table["tests"]


def copy_of(root: Path, folder: Path) -> Path:
    """A copy of the tracked files of a checkout, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    tree = folder / "tree"
    for name in listed.decode().split("\0")[:-1]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, tree / name, follow_symlinks=False)
    return tree


def tested(tree: Path, tests: Sequence[str], *, keeps_bytecode: bool, patience_s: float = PATIENCE_S) -> Run:
    """Run tests of a tree up to the first that fails."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "WARPSMITH_COMMIT": commit_name()}
    if not keeps_bytecode:
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    before = _cpu_s()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status: int | None = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Run(status, text, _cpu_s() - before)


def tried(tree: Path, faults: Sequence[Fault], tests: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """A row for each fault: its outcome, the test that caught it, and the seconds of processor time.

    Raises:
        SystemExit: tests fail without a fault.
        ValueError: a fault's text does not occur exactly once.
    """
    for fault in faults:
        fault.put_into((tree / fault.file).read_text())
    for name in dict.fromkeys(fault.tests for fault in faults):
        run = tested(tree, tests[name], keeps_bytecode=True)
        print(f"{name}: exit status {run.status} without a fault, {run.cpu_s:.1f} core-s", flush=True)
        if run.status != PASSED:
            raise SystemExit(f"the tests of {name!r} fail without a fault: {run.output[-TAIL_CHARACTERS:]}")
    rows = []
    for number, fault in enumerate(faults, 1):
        run = _with_fault(tree, fault, tests[fault.tests], number)
        rows.append(_row(fault, run))
        print(f"{rows[-1]['outcome']}: {fault.name} ({run.cpu_s:.1f} core-s)", flush=True)
    return rows


def _with_fault(tree: Path, fault: Fault, tests: Sequence[str], number: int) -> Run:
    path = tree / fault.file
    whole, at = path.read_bytes(), path.stat().st_mtime
    path.write_text(fault.put_into(whole.decode()))
    # Bytecode is told from that of another source by second and size; a child may have written some.
    os.utime(path, (at + number, at + number))
    try:
        return tested(tree, tests, keeps_bytecode=False)
    finally:
        path.write_bytes(whole)
        os.utime(path, (at, at))


def _row(fault: Fault, run: Run) -> dict[str, Any]:
    row = {"fault": fault.name, "file": fault.file, "tests": fault.tests, "cpu_s": round(run.cpu_s, 1)}
    if run.status == PASSED:
        return row | {"outcome": NOT_CAUGHT}
    if run.status == FAILED:
        by = re.search(r"^(?:FAILED|ERROR) (\S+)", run.output, re.MULTILINE)
        return row | {"outcome": CAUGHT, "by": by[1] if by else ""}
    words = f"exit status {run.status}" if run.status is not None else f"no end after {PATIENCE_S:g} s"
    return row | {"outcome": f"error: {words}", "output": run.output[-TAIL_CHARACTERS:]}


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                continue


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _in_words(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    caught = sum(r["outcome"] == CAUGHT for r in rows)
    text = (
        "# Faults put into the product\n\n"
        f"Commit {record['commit']}, {record['when']}. `{record['command']}`\n\n"
        f"{caught} of {len(rows)} are caught by the cheap tests of their part, in "
        f"{sum(r['cpu_s'] for r in rows):.0f} core-seconds.\n\n"
        "| tests | faults | caught | core-s |\n|---|---|---|---|\n"
    )
    for name in dict.fromkeys(r["tests"] for r in rows):
        some = [r for r in rows if r["tests"] == name]
        found, cpu_s = sum(r["outcome"] == CAUGHT for r in some), sum(r["cpu_s"] for r in some)
        text += f"| {name} | {len(some)} | {found} | {cpu_s:.0f} |\n"
    others = [f"- {r['fault']} (`{r['file']}`): {r['outcome']}\n" for r in rows if r["outcome"] != CAUGHT]
    return text + ("\n" + "".join(others) if others else "")


def main() -> int:
    """See the module's text. Exit status 1: a fault was not caught, or could not be tried."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    faults, tests = read_faults()
    parser.add_argument("--only", choices=list(tests), help="the faults of one set of tests")
    parser.add_argument("--out", type=record_folder, default=ROOT / "benchmarks" / "results")
    arguments = parser.parse_args()
    chosen = [f for f in faults if arguments.only in (None, f.tests)]
    record = {
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": plain_command("python -m benchmarks.mutation " + " ".join(sys.argv[1:])),
    }
    with tempfile.TemporaryDirectory(prefix="warpsmith-mutation-") as folder:
        rows = tried(copy_of(ROOT, Path(folder)), chosen, tests)
    (arguments.out / f"{NAME}.json").write_text(json.dumps(record | {"faults": rows}, indent=1) + "\n")
    text = _in_words(record, rows)
    (arguments.out / f"{NAME}.md").write_text(text)
    print(text)
    return 0 if all(row["outcome"] == CAUGHT for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
