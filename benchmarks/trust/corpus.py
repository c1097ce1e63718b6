"""Every kernel of testbed/adversarial through the whole acceptance procedure, on a real device.

    python -m benchmarks.trust.corpus [--backend opencl|cuda] [--pairs 6] [--jobs 1] [--only TEXT]
        [--out FOLDER]

Writes `trust-<backend>.json` (every case) and `.md` (rates with Wilson intervals, what caught what).
An attack succeeds when a kernel that must be refused is accepted, or one that must not gain is called
faster on some workload. A false positive is an honest kernel that is refused. The exit status is 1
where the state of a case is not the one that its file states.

With `--jobs`, so many processes share the device. Cases whose verdict hangs on times run alone after
them, and so does, once more, every case that was not as expected.
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, in_words, share, where
from testbed.adversarial.corpus import KINDS, Case, load
from testbed.adversarial.harness import Harness
from warpsmith.domain.device import Backend
from warpsmith.sandbox import CompilePool

Row = dict[str, Any]


def run_case(harness: Harness, case: Case, backend: Backend) -> Row:
    """One case and what became of it."""
    began = time.monotonic()
    found = harness.try_candidate(case.job(backend), case.template(backend), case.times)
    return {
        "name": case.name,
        "kind": case.kind,
        "task": case.task,
        "exploit": case.exploit,
        "expect": case.expect,
        "status": case.status_on(backend),
        "as_expected": found.meets(case.expect),
        "accepted": found.accepted,
        "faster": found.faster,
        "layer": found.layer,
        "stated_layer": case.layer,
        "reason": found.reason[:300],
        "verdicts": [c.verdict.value for c in found.comparisons],
        "speedups": [round(c.speedup.estimate, 3) for c in found.comparisons],
        "seconds": round(time.monotonic() - began, 2),
    }


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Rates by kind, and which layer caught how many."""
    kinds = {k: [r for r in rows if r["kind"] == k] for k in KINDS}
    failed = {k: sum(not r["as_expected"] for r in found) for k, found in kinds.items()}
    bad = kinds["cheats"] + kinds["mutants"]
    return {
        "attack_success": share(failed["cheats"], len(kinds["cheats"])),
        "mutants_accepted": share(failed["mutants"], len(kinds["mutants"])),
        "false_positives": share(failed["honest"], len(kinds["honest"])),
        "caught_by": dict(Counter(r["layer"] for r in bad if not r["accepted"]).most_common()),
        "neutralised": sum(r["accepted"] and r["as_expected"] for r in bad),
    }


def surprises(rows: Sequence[Row]) -> list[str]:
    """Cases whose state is not the one that their file states."""
    return [
        f"{r['name']}: its file says {r['status']}, and it is {'held' if r['as_expected'] else 'open'}"
        for r in rows
        if r["status"] != "varies" and r["as_expected"] != (r["status"] == "held")
    ]


def page(record: dict[str, Any]) -> str:
    """The record as a page."""
    found, rows = record["summary"], record["cases"]
    lines = [
        f"# Trust: the adversarial corpus on {record['device']}",
        "",
        f"{record['driver']}. Commit {record['commit']}, {record['when']}. `{record['command']}`",
        "",
        *([record["resumed_from"], ""] if record.get("resumed_from") else []),
        f"- Attacks that succeed: {in_words(found['attack_success'])}.",
        f"- Mutants that are accepted: {in_words(found['mutants_accepted'])}.",
        f"- Honest kernels that are refused: {in_words(found['false_positives'])}.",
        f"- Cases that the time did not suffice for: {record['not_run']}.",
        f"- Accepted, and no gain claimed, as it should be: {found['neutralised']}.",
        "",
        "| caught by | kernels |",
        "|---|---|",
        *(f"| {layer} | {count} |" for layer, count in found["caught_by"].items()),
        "",
        "| exploit | cases | held | caught by |",
        "|---|---|---|---|",
    ]
    exploits = sorted({r["exploit"] for r in rows if r["exploit"]}, key=lambda e: int(e[1:]))
    for exploit in exploits:
        of = [r for r in rows if r["exploit"] == exploit]
        held = sum(r["as_expected"] for r in of)
        layers = Counter(r["layer"] or "accepted" for r in of)
        words = ", ".join(f"{name} {count}" for name, count in layers.most_common())
        lines.append(f"| {exploit} | {len(of)} | {held} | {words} |")
    wrong = [r for r in rows if not r["as_expected"]]
    chance = [r for r in rows if r["status"] == "varies" and r["as_expected"]]
    if chance:
        lines += ["", "Held this time, by chance: " + ", ".join(f"`{r['name']}`" for r in chance) + "."]
    if wrong:
        lines += ["", "Not as expected:", ""]
        lines += [f"- `{r['name']}`: {r['layer'] or 'accepted'} {r['reason'][:120]}".rstrip() for r in wrong]
    return "\n".join(lines) + "\n"


class _Turn:
    """What the processes of `side_by_side` wait for."""

    lock: Any = nullcontext()
    everybody: Any = threading.Barrier(1)


_turn = _Turn()


def _join(lock: Any, everybody: Any) -> None:
    _turn.lock, _turn.everybody = lock, everybody


def run_cases(
    cases: Sequence[Case], backend: Backend, pairs: int, seconds: float, workers: int = 0
) -> list[Row]:
    """Cases in order, in this process, as far as the time suffices."""
    device = first_device(backend)
    pool = CompilePool(workers)
    with _turn.lock:  # it measures what the device can do
        harness = Harness(device, pool, pairs=pairs)
    _turn.everybody.wait()
    rows: list[Row] = []
    began = time.monotonic()
    try:
        for case in cases:
            if time.monotonic() - began > seconds:
                break
            rows.append(run_case(harness, case, backend))
            r = rows[-1]
            words = "as expected" if r["as_expected"] else "NOT AS EXPECTED"
            seen = r["layer"] or f"accepted {' '.join(r['verdicts'])}"
            print(f"{r['name']}: {seen}, {words} ({r['seconds']} s)", flush=True)
    finally:
        harness.close()
        pool.close()
    return rows


def needs_quiet(case: Case) -> bool:
    """Whether its verdict hangs on how long something takes."""
    return case.expect == "no gain" or case.layer in ("winner", "floor") or case.times != ""


def side_by_side(cases: Sequence[Case], backend: Backend, pairs: int, seconds: float, jobs: int) -> list[Row]:
    """The same over several processes that share the device."""
    began = time.monotonic()
    together = [case for case in cases if not needs_quiet(case)]
    workers = max(1, (os.cpu_count() or 1) // jobs)
    # Not forked: what this process has open is not for the children of the others.
    context = multiprocessing.get_context("spawn")
    shared = (context.Lock(), context.Barrier(jobs))
    with ProcessPoolExecutor(jobs, context, _join, shared) as pool:
        parts = [
            pool.submit(run_cases, together[k::jobs], backend, pairs, seconds, workers) for k in range(jobs)
        ]
        rows = [row for part in parts for row in part.result()]
    first = {r["name"]: r for r in rows if not r["as_expected"]}
    alone = [case for case in cases if needs_quiet(case) or case.name in first]
    left = seconds - (time.monotonic() - began)
    for row in run_cases(alone, backend, pairs, left):
        before = first.get(row["name"])
        again = {} if before is None else {"beside_others": [before["layer"], before["reason"]]}
        rows = [r for r in rows if r["name"] != row["name"]] + [row | again]
    return rows


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="opencl", choices=["opencl", "cuda"])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=36_000, help="no case begins after that")
    parser.add_argument(
        "--only", default="", help="cases whose name has one of these texts; nothing is recorded"
    )
    parser.add_argument("--resume", type=Path, help="a record whose cases need not run again")
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    backend = Backend(arguments.backend)
    device = first_device(backend)
    rows: list[Row] = [] if arguments.resume is None else json.loads(arguments.resume.read_text())["cases"]
    known = {r["name"] for r in rows}
    chosen = [
        c
        for k in KINDS
        for c in load(k)
        if backend in c.backends
        and c.name not in known
        and any(text in c.name for text in arguments.only.split(","))
    ]
    # In an order of chance, so that a run cut short by --seconds says something of every kind.
    random.Random(0).shuffle(chosen)
    if arguments.jobs > 1:
        found = side_by_side(chosen, backend, arguments.pairs, arguments.seconds, arguments.jobs)
    else:
        found = run_cases(chosen, backend, arguments.pairs, arguments.seconds)
    rows += found
    record = where(device, "python -m benchmarks.trust.corpus " + " ".join(sys.argv[1:]))
    rows.sort(key=lambda r: (KINDS.index(r["kind"]), r["name"]))
    resumed = {"resumed_from": json.loads(arguments.resume.read_text()).get("note", "")} if known else {}
    left = len(chosen) - len(found)
    record |= resumed | {"pairs": arguments.pairs, "not_run": left, "summary": summary(rows), "cases": rows}
    if not arguments.only:
        name = "trust-pocl" if device.shares_host else f"trust-{backend.value}"
        (arguments.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        (arguments.out / f"{name}.md").write_text(page(record))
    print(page(record))
    unexpected = surprises(rows)
    print("\n".join(unexpected))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
