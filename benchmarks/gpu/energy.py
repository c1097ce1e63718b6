"""Energy of a launch on the GPU of this machine: is it steady, and does it follow the work?

    python -m benchmarks.gpu.energy --out OUT [--commit SHA] [family ...]

For every CUDA example whose kernel leaves its inputs alone: the user's kernel against itself and against a
few configurations of its template, on its largest workload. Energy is by NVML's counter; beside it, how much
runs of one kernel differ, and which configurations no other beats in both time and energy. A copy kernel of
two sizes shows whether energy follows the bytes. Writes `OUT/energy.json` and `OUT/energy.md`.
"""

import argparse
import json
import random
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.job_files import FAMILIES, load
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job, Workload
from warpsmith.domain.outcome import Rejected
from warpsmith.domain.plan import plan_workload
from warpsmith.domain.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, ExpressionError, KernelRefused
from warpsmith.measure.ceiling_kernels import copy_kernel
from warpsmith.measure.energy import pareto
from warpsmith.measure.nvml import Nvml, nvml_for
from warpsmith.measure.protocol import search_plan
from warpsmith.measure.statistics import summarise
from warpsmith.rewrite.templater import make_template
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner, probe_devices
from warpsmith.search import enumerate_space
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts
from warpsmith.tuning.session.launch_limits import size_within_limits
from warpsmith.tuning.timing.energy import energies, measurable
from warpsmith.tuning.timing.paired_blocks import Side

OTHERS = 4
"""Configurations of a template that are measured beside the user's kernel."""
COPIES = (1 << 23, 1 << 25)
"""Vectors of four floats: 128 MiB and 512 MiB in, and as many out."""


def largest(job: Job, device: DeviceInfo) -> Workload:
    """The workload with the most bytes."""
    scope = device.scope() | job.space.defaults
    return max(
        job.workloads,
        key=lambda w: sum(b.size_bytes for b in plan_workload(job.kernel, w, scope, seed=0).buffers),
    )


def some(job: Job, template: Template, device: DeviceInfo) -> list[ConfiguredKernel]:
    """The user's kernel twice, then the template's own starts and random feasible configurations."""
    own = Template(kernel=job.kernel, space=job.space).configured(job.space.defaults)
    feasible = enumerate_space(template.space, [device.scope() | w.scope() for w in job.workloads])
    rng = random.Random(0)
    drawn = [feasible.configuration(r) for r in rng.sample(range(len(feasible)), min(len(feasible), 8))]
    listed = [*template.warm_starts, *drawn][:OTHERS]
    return [own, own, *(template.configured(c) for c in listed)]


def side(
    job: Job, workload: Workload, kernel: ConfiguredKernel, ports: SessionPorts
) -> tuple[Side, float] | Rejected | str:
    """A kernel in a process of its own, and its time in µs; or why it does not run."""
    session = DeviceSession(job, ports)
    try:
        compiled = session.compile(kernel)
        if isinstance(compiled, Rejected):
            return compiled
        size = size_within_limits(kernel, workload, ports.opener.info)
        if isinstance(size, Rejected):
            return size.reason
        handle = session.device(workload).load(compiled)
        samples = (
            session.device(workload)
            .time(handle, session.inputs.plan(workload).key, size, search_plan(job.objective.cache))
            .samples
        )
    except (ChildDied, KernelRefused, ExpressionError) as exc:
        return str(exc)
    return Side(session, LoadedKernel(handle, workload, size)), summarise(samples.samples_us, 1).median_us


def family_energy(
    job: Job, kernels: list[ConfiguredKernel], ports: SessionPorts, counter: Nvml
) -> dict[str, Any]:
    """Times and energies of kernels beside the first of them."""
    workload = largest(job, ports.opener.info)
    first = side(job, workload, kernels[0], ports)
    assert isinstance(first, tuple), first
    rows: list[dict[str, Any]] = []
    points: dict[str, tuple[float, float]] = {}
    for number, kernel in enumerate(kernels[1:]):
        other = side(job, workload, kernel, ports)
        if not isinstance(other, tuple):
            rows.append({"configuration": kernel.configuration, "failed": str(other)[:200]})
            continue
        sides, times_us = {"A": first[0], "B": other[0]}, {"A": first[1], "B": other[1]}
        found = energies(job, counter, sides, times_us, number)
        other[0].session.close()
        name = "the same again" if number == 0 else f"configuration {number}"
        rows.append(
            {
                "name": name,
                "configuration": kernel.configuration,
                "baseline_us": first[1],
                "us": other[1],
                "energy": None if found is None else asdict(found),
            }
        )
        if found is not None:
            points.setdefault("baseline", (first[1], found.baseline_mj))
            points[name] = (other[1], found.winner_mj)
        print(job.name, rows[-1], flush=True)
    first[0].session.close()
    return {"workload": workload.key, "rows": rows, "pareto": pareto(points)}


def copies(device: DeviceInfo, ports: SessionPorts, counter: Nvml) -> dict[str, Any]:
    """A copy of four times the bytes against one of the bytes."""
    kernel = copy_kernel(Backend.CUDA)
    job = Job(name="copy", kernel=kernel, workloads=tuple(Workload(dimensions={"n": n}) for n in COPIES))
    configured = Template(kernel=kernel).configured({})
    small, large = (side(job, w, configured, ports) for w in job.workloads)
    assert isinstance(small, tuple) and isinstance(large, tuple), (small, large)
    found = energies(job, counter, {"A": small[0], "B": large[0]}, {"A": small[1], "B": large[1]}, 0)
    for opened in (small, large):
        opened[0].session.close()
    assert found is not None, f"{device.name} reports no energy"
    return {
        "vectors": COPIES,
        "us": [small[1], large[1]],
        "mj": [found.baseline_mj, found.winner_mj],
        "picojoules_per_byte": [
            mj * 1e9 / (32 * n) for mj, n in zip((found.baseline_mj, found.winner_mj), COPIES, strict=True)
        ],
        "watts": [
            mj / us * 1000
            for mj, us in zip((found.baseline_mj, found.winner_mj), (small[1], large[1]), strict=True)
        ],
        "spread": found.spread,
    }


def markdown(record: dict[str, Any]) -> list[str]:
    """The record as tables."""
    copy = record["copy"]
    lines = [
        "# Energy of a launch",
        "",
        f"{record['device']}, driver {record['driver']}. Commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        "A copy of 128 and of 512 MiB: " + " and ".join(f"{x:.3g} mJ" for x in copy["mj"]) + ", "
        + " and ".join(f"{x:.0f} W" for x in copy["watts"]) + ", "
        + " and ".join(f"{x:.1f} pJ a byte" for x in copy["picojoules_per_byte"])
        + f"; runs of one differ by {100 * copy['spread']:.1f} %.",
        "",
        "| kernel | beside the baseline | µs | mJ | energy, baseline = 1 | runs differ by | no other beats |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, found in record["families"].items():
        for row in found["rows"]:
            energy = row.get("energy")
            if energy is None:
                continue
            ratio = energy["winner_mj"] / energy["baseline_mj"]
            front = "yes" if row["name"] in found["pareto"] else ""
            lines.append(
                f"| {name} {found['workload']} | {row['name']} | {row['us']:.2f} | {energy['winner_mj']:.4g} "
                f"| {ratio:.3f} | {100 * energy['spread']:.1f} % | {front} |"
            )
    return lines


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_intermixed_args()
    devices = [d for d in probe_devices().devices if d.backend is Backend.CUDA]
    if not devices:
        raise SystemExit("no CUDA device")
    device = devices[0]
    counter = nvml_for(device)
    if counter is None or counter.energy_j() is None:
        raise SystemExit(f"{device.name} does not report its energy through NVML")
    pool = CompilePool()
    ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner(), energy=counter)
    record: dict[str, Any] = {
        "device": device.name,
        "driver": device.driver,
        "commit": options.commit,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.gpu.energy", *options.families]),
        "copy": copies(device, ports, counter),
        "families": {},
    }
    for family in options.families or FAMILIES:
        job = load(family, "cuda")
        if measurable(job):
            kernels = some(job, make_template(job).template, device)
            record["families"][family] = family_energy(job, kernels, ports, counter)
    pool.close()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "energy.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "energy.md").write_text("\n".join(markdown(record)) + "\n")
    print("\n".join(markdown(record)))


if __name__ == "__main__":
    main()
