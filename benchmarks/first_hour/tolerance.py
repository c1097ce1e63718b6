"""Are correct kernels refused with default tolerances, and are wrong ones caught?

    python -m benchmarks.first_hour.tolerance [--runs 216] [--out FOLDER]

Every kernel, type and length of sums is checked as a job's own kernel is: against its NumPy reference, on
fresh inputs, with default tolerances that follow what the output holds, and with the fixed ones of its
type. Wrong kernels are tried as a job's own and as candidates of the right one.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

from benchmarks.first_hour.tolerance_kernels import EXAMPLES, MUTANTS, Example, Mutant
from benchmarks.provenance import record_folder
from benchmarks.trust.record import RESULTS, first_device, where
from testbed.adversarial.harness import OnceCompiler
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.dtype import Dtype
from warpsmith.domain.job import Job
from warpsmith.domain.launch_size import launch_size
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import Compiled
from warpsmith.domain.template import Template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.checks.baseline_cases import check_case
from warpsmith.tuning.checks.trivial_answers import untestable
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel
from warpsmith.tuning.session.session_ports import Case, SessionPorts
from warpsmith.tuning.tasks import BaselineResult

LENGTHS = (16, 50, 128, 256, 500, 1000, 1024, 2048, 4096)
TYPES = (Dtype.FLOAT32, Dtype.FLOAT16)


def ports_of(device: DeviceInfo, pool: CompilePool) -> SessionPorts:
    """The real compiler, device child and reference child."""
    return SessionPorts(ChildOpener(device), OnceCompiler(pool), ReferenceRunner())


def refusals(
    ports: SessionPorts, example: Example, dtype: Dtype, k: int, seed: int, defines: tuple[str, ...] = ()
) -> dict[str, str]:
    """Why a job's own kernel and, with `defines`, a wrong candidate of it is refused; empty where not.

    Args:
        defines: macros that make a mistake in the candidate; then a job's own kernel with it is tried, too.
    """
    right, wrong_ = (example.job(dtype, k, defines=d) for d in ((), defines))
    session = DeviceSession(right, ports, seed=seed)
    found: dict[str, str] = {}
    try:
        (workload,) = right.workloads
        another = session.inputs.another_draw(workload)
        failed = session.expected.compute([Case(workload), another])
        if failed:
            raise next(iter(failed.values()))
        kernel, compiled = _built(session, right)
        size = launch_size(kernel, workload, ports.opener.info)
        handle = session.device(workload).load(compiled)
        mistaken = session.device(workload).load(_built(session, wrong_)[1]) if defines else handle
        for name, fixed in (("default", False), ("fixed", True)):
            session.inputs.job = example.job(dtype, k, fixed=fixed)
            checked = check_case(session, LoadedKernel(handle, workload, size), Case(workload))
            if defines:
                own = check_case(session, LoadedKernel(mistaken, workload, size), Case(workload))
                found[f"{name}_own"] = own.reason if isinstance(own, Rejected) else ""
            if isinstance(checked, Rejected):
                found[f"{name}_right"] = checked.reason
                continue
            found[f"{name}_right"] = untestable(session, workload, another)
            if not defines:
                continue
            session.baseline.learn(BaselineResult(device=ports.opener.info, cases=(checked,)))
            judged = session.checker.check(LoadedKernel(mistaken, workload, size), whole=True)
            found[f"{name}_candidate"] = judged.reason if isinstance(judged, Rejected) else ""
    finally:
        session.close()
    return found


def _built(session: DeviceSession, job: Job) -> tuple[Any, Compiled]:
    kernel = Template(kernel=job.kernel).configured({})
    compiled = session.compile(kernel)
    if isinstance(compiled, Rejected):
        raise SystemExit(f"{job.name}: {compiled.reason}\n{compiled.log}")
    return kernel, compiled


def correct_runs() -> Iterator[tuple[Example, Dtype, int]]:
    """Every kernel, type and length, again and again."""
    for _ in count():
        for k in LENGTHS:
            for example in EXAMPLES.values():
                for dtype in TYPES:
                    yield example, dtype, k


def correct(ports: SessionPorts, runs: int) -> list[dict[str, Any]]:
    """Of each run, what is refused."""
    rows = []
    for number, (example, dtype, k) in enumerate(islice(correct_runs(), runs)):
        row: dict[str, Any] = {"kernel": example.name, "dtype": dtype.value, "k": k, "chosen": example.chosen}
        found = refusals(ports, example, dtype, k, number + 1)
        rows.append(row | {"default": found["default_right"], "fixed": found["fixed_right"]})
        if any(found.values()):
            print(rows[-1], flush=True)
    return rows


def wrong(ports: SessionPorts, mutants: Sequence[Mutant] = MUTANTS, seeds: int = 3) -> list[dict[str, Any]]:
    """Of each mutant, on how many seeds it is caught."""
    rows = []
    for mutant in mutants:
        row: dict[str, Any] = {"mutant": mutant.name, "dtype": mutant.dtype.value, "seeds": seeds}
        row |= {f"{name}_{part}": 0 for name in ("default", "fixed") for part in ("own", "candidate")}
        for seed in range(1, seeds + 1):
            found = refusals(ports, EXAMPLES[mutant.of], mutant.dtype, mutant.k, seed, mutant.defines)
            for name in row.keys() & found.keys():
                row[name] += bool(found[name])
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=216)
    parser.add_argument("--out", type=record_folder, default=RESULTS)
    arguments = parser.parse_args()
    device = first_device(Backend.OPENCL)
    pool = CompilePool()
    try:
        ports = ports_of(device, pool)
        runs, mutants = correct(ports, arguments.runs), wrong(ports)
    finally:
        pool.close()
    record = where(device, "python -m benchmarks.first_hour.tolerance " + " ".join(sys.argv[1:]))
    for name in ("default", "fixed"):
        for chosen in (True, False):
            of = [r for r in runs if r["chosen"] is chosen]
            where_from = "chosen_on" if chosen else "others"
            record[f"refused_{name}_{where_from}"] = [sum(bool(r[name]) for r in of), len(of)]
    record |= {"refused": [r for r in runs if r["default"] or r["fixed"]], "mutants": mutants}
    (arguments.out / "first-hour-tolerance.json").write_text(json.dumps(record, indent=1) + "\n")
    lost = [m for m in mutants if any(m[f"default_{a}"] < m[f"fixed_{a}"] for a in ("own", "candidate"))]
    print({k: v for k, v in record.items() if k.startswith("refused_")}, "lost:", lost)
    return 1 if lost or any(r["default"] for r in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
