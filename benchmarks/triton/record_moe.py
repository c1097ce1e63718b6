"""Measure SGLang's fused MoE at every configuration and batch size, for `benchmarks.triton.tables`.

    python -m benchmarks.triton.record_moe --sources FOLDER --layer NAME --out FOLDER [--share 0.1]
        [--beside FOLDER]

With a share, configurations are drawn by lot for each batch size; the engine's default and the rows of tables
that `--beside` names are always among them. Every configuration is compiled, launched, compared with the
engine's own default in part of its output, and timed: device time by graph replay, inputs not in the
last-level cache. The best are timed again.
"""

import argparse
import gzip
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import head, record_folder
from benchmarks.triton.missing_tables import MISSING
from benchmarks.triton.moe import NUMBERS, Layer, default_configuration, moe_job
from benchmarks.trust.record import first_device
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Job
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.jobs.plan import Compiled, TimingPlan, WorkloadPlan, plan_workload
from warpsmith.domain.templates.outcome import Rejected
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, KernelRefused
from warpsmith.extensions.exports.tables.known_tables import table_rows
from warpsmith.extensions.exports.tables.model_config import SIZES
from warpsmith.extensions.exports.tables.moe_job import SWEPT
from warpsmith.sandbox import ChildOpener, CompilePool
from warpsmith.tuning.execution.variants import submit
from warpsmith.tuning.ports import DevicePort

LAYERS = {
    "mixtral": Layer("mixtral", experts=8, rows=3584, hidden=4096, top_k=2),
    "qwen": Layer("qwen", experts=64, rows=1536, hidden=2048, top_k=8),
    **MISSING,
}
"""Of the size of Mixtral 8x7B on eight devices, of a Qwen3 model with half of its experts, and those of
`missing_tables`."""
SAMPLES, AGAIN, MOST_AGAIN = 8, 1.10, 60
SHOWN = (2048, 4)
"""Length and number of the stretches of output that are compared."""


def main() -> int:
    """Record, and write `moe-NAME.json.gz`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--layer", choices=LAYERS, required=True)
    parser.add_argument("--tokens", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--beside", type=Path, help="folder with tables of the layer")
    parser.add_argument("--out", type=record_folder, required=True)
    asked = parser.parse_args()
    device = first_device(Backend.CUDA)
    layer, source = LAYERS[asked.layer], (asked.sources / "moe.py").read_text()
    beside = _rows_of(asked.beside) if asked.beside else ()
    began_s = time.monotonic()
    rows: list[dict[str, Any]] = []
    pool = CompilePool(timeout_s=120)
    try:
        parts = [
            _Part(pool, device, source, layer, Chosen(tokens, asked.share, beside)) for tokens in asked.tokens
        ]
        for part in parts:
            rows += part.measured()
            print(f"{time.monotonic() - began_s:6.1f} s {part.job.name}", file=sys.stderr, flush=True)
    finally:
        pool.close()
    made = head(device, "python -m benchmarks.triton.record_moe " + " ".join(sys.argv[1:]))
    made |= {"seconds": round(time.monotonic() - began_s, 1), "compiler": rows[0].get("compiler", "")}
    record = {"made": made, "layer": vars(layer), "parameters": list(NUMBERS), "rows": rows}
    with gzip.open(asked.out / f"moe-{layer.name}.json.gz", "wt") as stream:
        json.dump(record, stream)
    return 0


def _rows_of(folder: Path) -> set[tuple[int, ...]]:
    """Batch size and values of all rows of tables below a folder."""
    tables = map(table_rows, sorted(folder.rglob("*.json")))
    return {(m, *(int(row[n]) for n in NUMBERS)) for table in tables for m, row in table.items()}


@dataclass(frozen=True)
class Chosen:
    """The configurations of one batch size that are measured."""

    tokens: int
    share: float
    """Of the swept ones, drawn by lot."""
    beside: Collection[tuple[int, ...]]
    """Further ones: batch size and values."""

    def rows(self, default: Mapping[str, int]) -> list[dict[str, int]]:
        """The configurations, with the default."""
        swept: list[tuple[int, ...]] = [*itertools.product(*SWEPT)]
        found = {*random.Random(self.tokens).sample(swept, round(self.share * len(swept)))}
        found |= {tuple(default.values()), *(tuple(row) for m, *row in self.beside if m == self.tokens)}
        return [dict(zip(NUMBERS, row, strict=True)) for row in sorted(found)]


class _Part:
    """One batch size: everything is compiled at once, then measured."""

    def __init__(
        self, pool: CompilePool, device: DeviceInfo, source: str, layer: Layer, chosen: Chosen
    ) -> None:
        self.job = moe_job(source, layer, chosen.tokens)
        self._device, self._tokens = device, chosen.tokens
        self._default = default_configuration(layer, chosen.tokens)
        found = chosen.rows(self._default)
        self._kernels = [_configured(self.job, c) for c in found]
        self._compiled: list[Future[Compiled | Rejected]] = [
            submit(pool, kernel, self.job.workloads, device) for kernel in self._kernels
        ]

    def measured(self) -> list[dict[str, Any]]:
        """A row for each configuration."""
        (workload,) = self.job.workloads
        plan = plan_workload(self.job.kernel, workload, self.job.space.defaults | self._device.scope(), 7)
        rows, compiled = [], [f.result() for f in self._compiled]
        child: DevicePort | None = None
        right = None
        for kernel, binary in zip(self._kernels, compiled, strict=True):
            row: dict[str, Any] = {"M": self._tokens, **kernel.configuration}
            rows.append(row)
            if isinstance(binary, Rejected):
                row["rejected"] = binary.reason[:200]
                continue
            row |= {"compile_s": round(binary.facts.seconds, 3), "compiler": binary.facts.compiler}
            try:
                child = child or self._opened(plan)
                output, times = self._run(child, kernel, binary, plan)
            except (KernelRefused, ChildDied) as exc:
                row["rejected"] = str(exc)[:200]
                child = None if isinstance(exc, ChildDied) else child
                continue
            right = output if right is None else right
            if not np.allclose(output, right, rtol=2e-2, atol=2e-1):
                row["rejected"] = "wrong"
                continue
            row["us"] = times
        if child is not None:
            self._again(child, rows, compiled, plan)
            child.close()
        return rows

    def _opened(self, plan: WorkloadPlan) -> DevicePort:
        child = ChildOpener(self._device, 60).open()
        child.prepare(plan)
        return child

    def _run(
        self, child: DevicePort, kernel: ConfiguredKernel, binary: Compiled, plan: WorkloadPlan
    ) -> tuple[Any, list[float]]:
        size = launch_size(kernel, self.job.workloads[0], self._device)
        handle = child.load(binary)
        try:
            length, number = SHOWN
            elements = plan.mutated[0].elements
            starts = np.linspace(0, elements - length, number).astype(int)
            ranges = {"c_ptr": [(int(s), int(s) + length) for s in starts]}
            output = child.run(handle, plan.key, size, ranges).outputs["c_ptr"].astype(np.float32)
            timed = child.time(handle, plan.key, size, TimingPlan(CacheState.COLD, SAMPLES, enough_s=0.05))
        finally:
            child.unload(handle)
        return output, [round(s, 3) for s in timed.samples.samples_us]

    def _again(
        self, child: DevicePort, rows: list[dict[str, Any]], compiled: list[Any], plan: WorkloadPlan
    ) -> None:
        """Time what is near the best, and the default, three times more: the best of many is the luckiest."""
        known = [n for n, row in enumerate(rows) if "us" in row]
        if not known:
            return
        best = min(statistics.median(rows[n]["us"]) for n in known)
        near = sorted(known, key=lambda n: statistics.median(rows[n]["us"]))[:MOST_AGAIN]
        near = [n for n in near if statistics.median(rows[n]["us"]) <= AGAIN * best]
        near += [n for n in known if n not in near and _is(rows[n], self._default)]
        for _ in range(3):
            for n in near:
                _, times = self._run(child, self._kernels[n], compiled[n], plan)
                rows[n].setdefault("again_us", []).append(statistics.median(times))


def _configured(job: Job, configuration: dict[str, int]) -> ConfiguredKernel:
    return Template(kernel=job.kernel, space=job.space).configured(configuration)


def _is(row: dict[str, Any], configuration: dict[str, int]) -> bool:
    return all(row[n] == v for n, v in configuration.items())


if __name__ == "__main__":
    sys.exit(main())
