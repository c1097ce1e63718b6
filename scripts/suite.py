"""Run a tier of the suite, three tests at a time, then those that want quiet cores; add up core-seconds.

Run: python scripts/suite.py {gate,changed,full} [--record FOLDER] [arguments of pytest]

`gate` is `make test`: the tests under 0.3 core-seconds, and the list of `tests/gate.toml`; a whole gate
above `GATE_CORE_S` is red, in core-seconds of a machine of the pace `PACE_S`. `changed` runs what the gate
leaves out of the rooms that changed since the branch's base, or, on the base itself, since the full suite was
recorded. `full` runs all. A failed test that passes when it runs once more by itself is printed as a defect;
two failures have a cause in common.
"""

import ctypes
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from testbed.rooms import changed_paths, failed_before, tests_of
from testbed.tiers import COSTS, DEAR_CORE_S, in_tier, promises, read_costs, recorded_costs
from warpsmith.commit import commit_name

# More than the cores of a small machine: many tests wait for processes, leases and sockets.
AT_A_TIME = 3
PARTS = {
    "beside": ("--part", "beside", "-n", str(AT_A_TIME), "--dist", "worksteal"),
    "alone": ("--part", "alone"),
}
GATE_CORE_S = 1200.0
"""Budget of the whole gate, which takes 701; the aim is 850, seven minutes of two cores."""
PACE_S = 0.1
"""CPU seconds of `FIXED_WORK` beside the recorded gate. On a machine that is slower, or has other work, the
same gate takes up to three times the core-seconds."""
PACE_EVERY_S = 10.0
FIXED_WORK = "import asyncio, decimal, email.mime.text, http.client, json, sqlite3, unittest, xml.dom.minidom"
"""Program whose time goes where that of most tests goes: an interpreter that starts and imports."""
BY_CHANCE = 1
"""Failed tests of a part up to which they run again; more have a cause in common."""
TIERS = {"gate": "gate", "changed": "rest", "full": "full"}
SHOWN = 10
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def verdict(codes: Sequence[int]) -> int:
    """Exit status of all runs: the first failure; a part with no test is none, unless all have none."""
    ran = [code for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED]
    return next((code for code in ran if code), 0) if ran else int(pytest.ExitCode.NO_TESTS_COLLECTED)


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Environment of both parts: bytecode is kept, which hundreds of processes would compile anew."""
    return {name: value for name, value in given.items() if name != "PYTHONDONTWRITEBYTECODE"}


def adopt_orphans() -> None:
    """Become the parent of orphans, on Linux: their CPU time counts, and somebody waits for them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def core_seconds_of(words: Sequence[str]) -> tuple[int, float]:
    """Run a command; returns its exit status and the CPU seconds of the processes that ended meanwhile."""
    process = subprocess.Popen(words, env=environment(os.environ))
    spent = 0.0
    while True:
        try:
            pid, status, used = os.wait3(0)
        except KeyboardInterrupt:  # the terminal told the tests as well
            process.wait()
            raise
        spent += used.ru_utime + used.ru_stime
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, spent


def pace_s() -> float:
    """CPU seconds of the fixed work, done once; no other child of this process may end meanwhile."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run((sys.executable, "-c", FIXED_WORK), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def keep_pace(path: Path) -> None:
    """Add a line to a file now and then, for ever: the CPU seconds of the fixed work."""
    while True:
        time.sleep(PACE_EVERY_S)
        with path.open("a") as file:
            file.write(f"{pace_s()}\n")


def run(part: Sequence[str], words: Sequence[str], costs: Path) -> tuple[int, float, list[str]]:
    """Exit status, core-seconds and failures of one part, after a second run of one that may be chance."""
    # With `=`: a path that stands by itself would move the root folder of the tests.
    command = (sys.executable, "-m", "pytest", "-p", "testbed.core_seconds", f"--core-seconds={costs}")
    failures = costs.with_name("failures")
    failures.unlink(missing_ok=True)
    code, spent = core_seconds_of([*command, *part, f"--failures={failures}", *words])
    failed = failures.read_text().splitlines() if failures.exists() else []
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= BY_CHANCE:
        return code, spent, failed
    print("by itself runs once more:", *failed, sep="\n  ", flush=True)
    code, more = core_seconds_of([*command, *failed])
    if code == 0:
        print("DEFECT: this test failed, and passed by itself; mend it:", *failed, sep="\n  ", flush=True)
    return code, spent + more, failed


def folder_of(test: str) -> str:
    """Folder of a test as the table names it: two levels, three below `tests/unit`."""
    parts = test.split("::", maxsplit=1)[0].split("/")[:-1]
    return "/".join(parts[: 3 if parts[1:2] in (["unit"], ["extensions"]) else 2])


def by_folder(costs: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Tests, core-seconds and dear tests of each folder, the dearest first."""
    rows: dict[str, list[float]] = defaultdict(list)
    for name, seconds in costs.items():
        rows[folder_of(name)].append(seconds)
    ordered = sorted(rows.items(), key=lambda row: -sum(row[1]))
    return {
        folder: {
            "tests": len(row),
            "core_s": round(sum(row), 1),
            "dear": sum(seconds >= DEAR_CORE_S for seconds in row),
        }
        for folder, row in ordered
    }


def table(record: Mapping[str, object], folders: Mapping[str, Mapping[str, float]]) -> str:
    """The record in Markdown: its sums, and a row for each folder."""
    lines = [
        f"{record['tests']} tests, {record['core_s']} core-seconds, "
        f"{record['wall_s']} s on {record['cores']} cores of pace {record['pace_ms']} ms",
        "",
        "| folder | tests | core-seconds | dear tests |",
        "|---|---|---|---|",
        *(f"| {name} | {row['tests']} | {row['core_s']} | {row['dear']} |" for name, row in folders.items()),
    ]
    return "\n".join(lines)


def complaints(costs: Mapping[str, float], core_s: float, pace: float = PACE_S) -> list[str]:
    """Lines that make a whole gate red: a sum above its budget, and names on its list that no test has.

    Args:
        pace: CPU seconds of the fixed work beside this gate.
    """
    ran = {*costs, *(name.partition("[")[0] for name in costs)}
    lines = [f"tests/gate.toml lists no test of this suite: {name}" for name in promises() if name not in ran]
    budget = GATE_CORE_S * pace / PACE_S
    if core_s > budget:
        lines.append(
            f"the gate took {core_s:.0f} core-seconds; its budget is {budget:.0f} on a machine of this pace "
            f"({1000 * pace:.0f} ms), {GATE_CORE_S:.0f} on one of {1000 * PACE_S:.0f} ms"
        )
    return lines


def unlisted(costs: Mapping[str, float]) -> list[str]:
    """The dearest tests of a gate that its list does not name, with their cost."""
    listed = promises()
    dear = sorted((-s, n) for n, s in costs.items() if not {n, n.partition("[")[0]} & listed.keys())
    return [f"  {-seconds:6.2f}  {name}" for seconds, name in dear[:SHOWN] if -seconds >= DEAR_CORE_S]


def selection() -> list[str] | None:
    """Arguments that select the tests of the rooms that changed; None if there is nothing to run."""
    base, paths = changed_paths()
    chosen = tests_of(paths)
    chosen += [name for name in failed_before() if not name.startswith(tuple(chosen))]
    costs = recorded_costs()
    here = [c for n, c in costs.items() if n.startswith(tuple(chosen)) and in_tier(n, "rest")]
    print(
        f"since {base[:12]}: {len(paths)} files; of {', '.join(chosen) or 'no tests'} the gate leaves out",
        end=" ",
    )
    print(f"{len(here)} dear tests, {sum(here):.0f} core-seconds", flush=True)
    return chosen or None


def main(words: list[str]) -> int:
    """Run both parts of a tier, whatever comes of the first, and print its costs."""
    # A script's `&` ignores it, and so would all tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tier, *words = words
    if tier == "pace":
        keep_pace(Path(*words))
    folder = Path(words.pop(words.index("--record") + 1)) if "--record" in words else None
    words = [word for word in words if word != "--record"]
    is_whole = not words
    if tier == "changed" and not (words := selection() or []):
        return 0
    adopt_orphans()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as private:
        path = Path(private) / "core_seconds.tsv"
        path.touch()
        paces = Path(private) / "paces"
        paces.write_text(f"{pace_s()}\n")
        keeper = subprocess.Popen((sys.executable, __file__, "pace", paces))
        try:
            ran = [run((*part, "--tier", TIERS[tier]), words, path) for part in PARTS.values()]
        finally:
            keeper.kill()
            keeper.wait()
        pace = statistics.median(map(float, paces.read_text().split()))
        costs = read_costs(path)
    core_s = sum(spent for _, spent, _ in ran)
    failed = [name for _, _, names in ran for name in names]
    folders = by_folder(costs)
    record: dict[str, object] = {
        "commit": commit_name(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python scripts/suite.py {tier}",
        "cores": os.cpu_count(),
        "tests": len(costs),
        "core_s": round(core_s),
        "wall_s": round(time.monotonic() - began),
        "pace_ms": round(1000 * pace, 1),
    }
    print("", table(record, folders), sep="\n")
    code = verdict([code for code, _, _ in ran])
    if tier == "changed" and code == pytest.ExitCode.NO_TESTS_COLLECTED:
        code = 0  # the gate has all of them
    if tier == "gate" and is_whole:
        if dear := unlisted(costs):
            print("", "dear, and on no list (`tests/gate.toml`):", *dear, sep="\n")
        red = complaints(costs, core_s, pace)
        print(*red, sep="\n")
        code = code or int(bool(red))
    if folder is not None:
        write_record(folder, tier, record | {"failed": failed}, folders, costs if is_whole else {})
    return code


def write_record(
    folder: Path,
    tier: str,
    record: Mapping[str, object],
    folders: Mapping[str, Mapping[str, float]],
    costs: Mapping[str, float],
) -> None:
    """Write the record, and the costs of dear tests, by which gates go."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{tier}.json").write_text(json.dumps({**record, "folders": folders}, indent=1) + "\n")
    (folder / f"{tier}.md").write_text(
        f"# The suite, tier `{tier}`, {record['commit']}\n\n{table(record, folders)}\n"
    )
    if tier != "changed" and costs:
        known = {} if tier == "full" else recorded_costs()  # a gate learns of its own tests alone
        dear = sorted((name, s) for name, s in {**known, **costs}.items() if s >= DEAR_CORE_S)
        COSTS.write_text("".join(f"{seconds:.1f}\t{name}\n" for name, seconds in dear))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
