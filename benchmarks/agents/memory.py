"""What a memory is worth: a kernel tuned again, its sibling, and a memory that misleads.

    python -m benchmarks.agents.memory --backend cuda --out OUT [--kernels softmax ...] [--resume FILE]

Every run has a service of its own. `fresh` knows nothing. `known` is the same job with the lesson of the
fresh one. `sibling` is a kernel with another epilogue, with the lesson of the first kernel; `sibling_fresh`
is that kernel without. `misled` is the first job with a false lesson, which calls the worst measured
configuration the winner. The figure is the number of the first trial within 5 % of the best that any run of
that job found; `none` if a run did not come so near. Rejected trials count. Only the rules answer; no model
is asked.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agents.embedded import Embedded
from benchmarks.job_files import load
from benchmarks.provenance import head, record_folder
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import AgentPolicy, Budget, Job, KernelReference
from warpsmith.domain.space import Configuration
from warpsmith.tuning.lessons.lesson import Lesson

NEAR = 1.05
"""A trial is near the best if its time is at most so many times the best one's."""
CLAIMED = 3.0
"""Speed-up that a false lesson claims."""
EPILOGUES: Mapping[str, Sequence[tuple[str, str]]] = {
    "fused_add_rmsnorm": ((" * scale * ", " * scale * 0.5f * "),),
    "matmul": (
        ("__float2half(sum)", "__float2half(fmaxf(sum, 0.0f))"),
        ("+ column] = sum;", "+ column] = fmax(sum, 0.0f);"),
    ),
    "merge_attn_states": (
        ("__float2half(merged)", "__float2half(0.5f * merged)"),
        ("= weight_a * v_a", "= 0.5f * weight_a * v_a"),
    ),
    "silu_and_mul": (("silu(g) * u", "silu(g) * (u + 1.0f)"), ("* up[i];", "* (up[i] + 1.0f);")),
    "softmax": (("- top) / sum", "- top) * 2.0f / sum"),),
    "stencil": (("+ alpha * (", "+ 0.5f * alpha * ("),),
    "split_row_sum": (("y[row] = sum;", "y[row] = 2.0f * sum;"),),
    "column_sum": (
        (
            "+= reinterpret_cast<const float*>(&pack)[v];",
            "+= fabsf(reinterpret_cast<const float*>(&pack)[v]);",
        ),
    ),
    "sgemm": (("= sums[i][j];", "= fmaxf(sums[i][j], 0.0f);"),),
    "transpose": (("= tile[row][column];", "= 2.0f * tile[row][column];"),),
}
"""What makes a sibling of a kernel: the first text that its source has, and what stands there instead."""
RUNS = ("fresh", "known", "misled", "sibling_fresh", "sibling")


@dataclass(frozen=True)
class Done:
    """One run."""

    verified: float
    trials: tuple[tuple[Configuration, float | None], ...]
    seconds: float
    lesson: Lesson | None

    @property
    def best(self) -> float | None:
        """The best objective of its search."""
        return min((o for _, o in self.trials if o is not None), default=None)


def sibling(job: Job, name: str) -> Job:
    """The kernel with another epilogue, which is its own reference.

    Raises:
        KeyError: the kernel has no text for an epilogue.
    """
    text = job.kernel.text
    for old, new in EPILOGUES[name]:
        if text.count(old) == 1:
            kernel = job.kernel.model_copy(update={"source": text.replace(old, new)})
            return job.model_copy(
                update={"name": f"{job.name}-sibling", "kernel": kernel, "reference": KernelReference()}
            )
    raise KeyError(f"{name} ({job.kernel.backend}) has no text for an epilogue")


def misleading(lesson: Lesson, trials: Sequence[tuple[Configuration, float | None]]) -> Lesson | None:
    """The lesson with the worst measured configuration of its best template as the winner everywhere; None
    if none was measured."""
    if not lesson.attempts:
        return None
    best = lesson.attempts[0]
    names = {p.name for p in best.template.space.parameters}
    measured = [(o, n) for n, (c, o) in enumerate(trials) if o is not None and set(c) == names]
    if not measured:
        return None
    worst = trials[max(measured)[1]][0]
    false = best.model_copy(update={"objective": 1 / CLAIMED, "best": ((worst, 1 / CLAIMED),)})
    served = tuple(
        s.model_copy(update={"attempt": 0, "configuration": worst, "speedup": CLAIMED}) for s in lesson.served
    )
    attempts = (false, *lesson.attempts[1:])
    return lesson.model_copy(update={"attempts": attempts, "served": served, "speedup": CLAIMED})


def run(device: DeviceInfo, job: Job, lessons: Sequence[Lesson] = ()) -> Done:
    """Tune a job in a service of its own that knows these lessons."""
    with Embedded(device, lessons) as service:
        found = service.run(job)
        if found.state != "done":
            raise SystemExit(f"{job.name}: {found.state}: {found.detail}")
        return Done(found.speedup, service.trials(), found.job_s, service.lesson())


def kernel_runs(device: DeviceInfo, name: str, job: Job) -> dict[str, Done]:
    """All runs of one kernel."""
    other = sibling(job, name)
    done = {"fresh": run(device, job), "sibling_fresh": run(device, other)}
    taught = done["fresh"].lesson
    if taught is not None:
        done["known"] = run(device, job, [taught])
        done["sibling"] = run(device, other, [taught])
        false = misleading(taught, done["fresh"].trials)
        if false is not None:
            done["misled"] = run(device, job, [false])
    return done


def row(name: str, done: Mapping[str, Done]) -> dict[str, Any]:
    """The figures of one kernel."""
    found: dict[str, Any] = {"kernel": name, "runs": {}}
    for group in (("fresh", "known", "misled"), ("sibling_fresh", "sibling")):
        bests = [done[r].best for r in group if r in done]
        target = min((b for b in bests if b is not None), default=0.0) * NEAR
        for which in (r for r in group if r in done):
            one = done[which]
            found["runs"][which] = {
                "to_near_best": near([o for _, o in one.trials], target),
                "trials": len(one.trials),
                "best": one.best,
                "verified": one.verified,
                "seconds": one.seconds,
            }
    return found


def near(objectives: Sequence[float | None], target: float) -> int | None:
    """Number of trials up to the first that reaches the target; None if none does."""
    return next((n for n, o in enumerate(objectives, 1) if o is not None and o <= target), None)


def page(record: Mapping[str, Any]) -> str:
    """The record as a table."""
    limits = record["limits"]
    lines = [
        "# What a memory is worth",
        "",
        f"{record['device']}, driver {record['driver']}, commit {record['commit']}, {record['when']}.",
        f"At most {limits['trials']} trials and {limits['seconds']:g} s a job.",
        "A cell: trials to within 5 % of the best / verified speed-up.",
        "",
        "| kernel | " + " | ".join(RUNS) + " |",
        "|---" * (len(RUNS) + 1) + "|",
    ]
    for entry in record["rows"]:
        cells = [_cell(entry["runs"].get(which)) for which in RUNS]
        lines.append(f"| {entry['kernel']} | " + " | ".join(cells) + " |")
    return "\n".join((*lines, "", f"`{record['command']}`", ""))


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not run"
    return f"{found['to_near_best'] or 'none'} of {found['trials']} / {found['verified']:.2f}x"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=["cuda", "opencl"], default="cuda")
    parser.add_argument("--kernels", nargs="*", choices=list(EPILOGUES), default=list(EPILOGUES))
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workloads", type=int, default=1, help="the last so many of each job")
    parser.add_argument("--resume", type=Path, help="record of kernels that are not run again")
    parser.add_argument("--out", type=record_folder, required=True)
    options = parser.parse_args()
    device = first_device(Backend(options.backend))
    rows = json.loads(options.resume.read_text())["rows"] if options.resume else []
    limits = {name: getattr(options, name) for name in ("trials", "seconds", "workloads")}
    shown = "python -m benchmarks.agents.memory " + " ".join(sys.argv[1:])
    for name in (k for k in options.kernels if k not in {r["kernel"] for r in rows}):
        given = load(name, options.backend)
        job = given.model_copy(
            update={
                "workloads": given.workloads[-options.workloads :],
                "budget": Budget(rounds=1, trials=options.trials, seconds=options.seconds),
                "agents": AgentPolicy(provider="rules"),
            }
        )
        rows.append(row(name, kernel_runs(device, name, job)))
        record = head(device, shown) | {"limits": limits, "rows": rows}
        (options.out / f"memory-{options.backend}.json").write_text(json.dumps(record, indent=1) + "\n")
        (options.out / f"memory-{options.backend}.md").write_text(page(record))
        print(json.dumps(rows[-1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
