"""Jobs of HIP beside the same kernels in CUDA, on one NVIDIA device and one service.

    python -m benchmarks.hip.beside_cuda --out DIR [--seconds S] [--kernels NAMES] [--rounds N]

The CUDA jobs are those of `examples`. A job of HIP differs in its back end and its text (`kernels/NAME.hip`).
Each pair runs in turns, `--rounds` times. The record shows the times of both kernels as they are, the gains,
and the configurations that won. The service compiles HIP for NVIDIA devices behind headers of its own;
nothing here ran on AMD hardware.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.production.service import embedded_service
from benchmarks.provenance import head, record_folder
from testbed.example_jobs import load_example
from warpsmith.client import Client
from warpsmith.domain.device import Backend
from warpsmith.domain.job import Job
from warpsmith.domain.template import Template
from warpsmith.http_models import JobResult
from warpsmith.sandbox import probe_devices
from warpsmith.sandbox.compile_host import CompilePool

KERNELS = Path(__file__).parent / "kernels"
NAMES = ("silu_and_mul", "softmax", "stencil", "matmul")
COLUMNS = (
    *("kernel", "round", "same code", "workload", "CUDA as it is", "HIP as it is"),
    *("CUDA's gain", "HIP's gain", "winners"),
)
BEYOND_S = 120.0
"""Seconds that a job may take beyond its budget before it is cancelled."""


def pair(name: str, seconds: float) -> dict[Backend, Job]:
    """The jobs of a kernel in CUDA and in HIP."""
    cuda = load_example(name, "cuda")
    cuda = cuda.model_copy(
        update={"budget": cuda.budget.model_copy(update={"seconds": seconds, "rounds": 1})}
    )
    fields = cuda.model_dump(mode="json", exclude_none=True)
    fields["name"] = f"{name}-hip"
    fields["kernel"] |= {
        "backend": "hip",
        "source": (KERNELS / f"{name}.hip").read_text(),
        "source_file": None,
    }
    fields["kernel"]["options"] = []
    return {Backend.CUDA: cuda, Backend.HIP: Job.model_validate(fields)}


def ran(client: Client, job: Job) -> JobResult:
    """Submit a job and wait for its end.

    Raises:
        TimeoutError: it took too long and was cancelled.
    """
    name, began = client.submit(job).id, time.monotonic()
    while not client.status(name).state.is_terminal:
        if time.monotonic() - began > job.budget.seconds + BEYOND_S:
            client.cancel(name)
            raise TimeoutError(f"{job.name} did not end")
        time.sleep(0.2)
    return client.result(name)


def figures(result: JobResult) -> list[dict[str, Any]]:
    """Each workload: the kernel as it is, and what won."""
    compared = {c.workload: c for c in result.comparisons}
    served = {d.workload: d.configuration for d in result.dispatch}
    rows = []
    for timed in result.baseline:
        found = compared.get(timed.workload)
        rows.append(
            {
                "workload": timed.workload,
                "baseline": timed.cold and timed.cold.model_dump(),
                "best_us": found.best_us if found else None,
                "speedup": found.speedup.model_dump() if found else None,
                "verdict": found.verdict.value if found else "kept",
                "configuration": served.get(timed.workload),
            }
        )
    return rows


def same_code(jobs: Mapping[Backend, Job], pool: CompilePool) -> bool:
    """Whether both kernels, as they are, become the same machine code."""
    device = next(d for d in probe_devices().devices if d.backend is Backend.CUDA)
    made = []
    for job in jobs.values():
        own = Template(kernel=job.kernel, space=job.space).configured(job.space.defaults)
        made.append(pool.submit(own, device).result())
    first, second = (getattr(m, "binary", b"") for m in made)
    return bool(first) and _code(first) == _code(second)


def _code(binary: bytes) -> bytes:
    from warpsmith.backends.binaries.elf import read_elf

    found = [s for s in read_elf(binary).sections if s.name.startswith(".text.")]
    return b"".join(binary[s.offset : s.offset + s.size] for s in found)


def page(record: Mapping[str, Any]) -> str:
    """The record as Markdown."""
    lines = [
        "# HIP beside CUDA on an NVIDIA device",
        "",
        f"{record['device']}, {record['driver']}, commit {record['commit']}, {record['when']}. "
        f"`{record['command']}`",
        "",
        "HIP is compiled behind headers of the service's own; nothing here ran on AMD hardware. Times are "
        "medians of cold launches in µs, with the 10th and the 90th percentile of the samples.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for row in record["rows"]:
        lines += _lines(row)
    return "\n".join(lines) + "\n"


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    for cuda, hip in zip(row["cuda"], row["hip"], strict=True):
        same = "same" if cuda["configuration"] == hip["configuration"] else f"{_short(cuda)} / {_short(hip)}"
        cells = (
            *(row["kernel"], row["round"], "yes" if row["same_code"] else "no", cuda["workload"]),
            *(_time(cuda), _time(hip), _gain(cuda), _gain(hip), same),
        )
        yield f"| {' | '.join(str(c) for c in cells)} |"


def _time(row: Mapping[str, Any]) -> str:
    cold = row["baseline"]
    return f"{cold['median_us']:.2f} ({cold['low_us']:.2f} to {cold['high_us']:.2f})"


def _gain(row: Mapping[str, Any]) -> str:
    gain = row["speedup"]
    return "kept" if gain is None else f"{gain['estimate']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}]"


def _short(row: Mapping[str, Any]) -> str:
    values: Mapping[str, Any] = row["configuration"] or {}
    return " ".join(f"{name.removeprefix('WS_')}={value}" for name, value in values.items()) or "own"


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=record_folder, required=True)
    parser.add_argument("--seconds", type=float, default=24.0, help="budget of each job")
    parser.add_argument("--kernels", default=",".join(NAMES))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args(arguments)
    found = [d for d in probe_devices().devices if d.backend is Backend.CUDA]
    if not found:
        print("no CUDA device", file=sys.stderr)
        return 2
    command = "python -m benchmarks.hip.beside_cuda " + " ".join(
        sys.argv[1:] if arguments is None else arguments
    )
    rows: list[dict[str, Any]] = []
    record = head(found[0], command) | {"rows": rows}
    pool = CompilePool(1)
    with (
        tempfile.TemporaryDirectory(prefix="warpsmith-hip-") as folder,
        embedded_service(Path(folder)) as client,
    ):
        for number in range(1, options.rounds + 1):
            for name in options.kernels.split(","):
                jobs = pair(name, options.seconds)
                results = {backend: ran(client, job) for backend, job in jobs.items()}
                row: dict[str, Any] = {"kernel": name, "round": number, "same_code": same_code(jobs, pool)}
                row |= {backend.value: figures(result) for backend, result in results.items()}
                row["reasons"] = {b.value: r.reason and r.reason.sentence for b, r in results.items()}
                rows.append(row)
                print(json.dumps(row), flush=True)
                (options.out / "beside-cuda.json").write_text(json.dumps(record, indent=1) + "\n")
                (options.out / "beside-cuda.md").write_text(page(record))
    pool.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
