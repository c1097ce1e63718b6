"""Astra's own clock beside our device time, for ended jobs of `benchmarks.agents.gpu` on the same GPU.

    python -m benchmarks.agents.clock --state DIR [--jobs KERNEL.ARM.SEED ...] --out FILE.json

The user's kernel and what serves each workload are compiled again as the service does, checked on all
elements, and timed by single calls in turns (see `one_call`). Device times are those of the verification;
what it has not, and all of them if this is another GPU than the job's, is timed here by the same means.
After each job FILE.json and FILE.md are written anew; a job without figures has the reason there. No source
is in either.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agents.clock_page import Row, call_figures, page, summary
from benchmarks.agents.one_call import PAIRS, TIMED, WARM_UP, Calls, Launched, call_blocks
from benchmarks.provenance import head
from benchmarks.trust.record import first_device
from db import migrate
from db.engine import Database
from db.repositories.candidates import CandidateRepository
from db.views.result_views import job_result
from db.views.snapshot import job_baseline
from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.jobs.job import CacheState, Workload
from warpsmith.domain.jobs.launch_size import launch_size
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.errors import ChildDied, InvalidInput, KernelRefused, NotFound
from warpsmith.http_models import DispatchEntry, JobResult
from warpsmith.measure.protocol import winner_blocks
from warpsmith.measure.statistics import summarise
from warpsmith.sandbox import ChildOpener, CompilePool, ReferenceRunner
from warpsmith.tuning.session.baseline_kernel import compiled_baseline
from warpsmith.tuning.session.device_session import DeviceSession, LoadedKernel, SessionPorts
from warpsmith.tuning.tasks import BaselineResult
from warpsmith.tuning.timing.paired_blocks import TimedSide, block_plan, interleaved

DEVICE_PAIRS = 6
"""Block pairs of a device time that is taken here."""


class NoFigures(Exception):
    """Why a job has none, in words without any source."""


@dataclass(frozen=True)
class Ended:
    """What the database has of an ended job."""

    result: JobResult
    baseline: BaselineResult
    templates: Mapping[str, Template]
    """By candidate."""

    @classmethod
    def read(cls, database: Database, id_: str) -> "Ended":
        """Read it. Raises `NoFigures` if it has no dispatch table."""
        with database.read() as session:
            try:
                result, baseline = job_result(session, id_), job_baseline(session, id_)
            except NotFound as exc:
                raise NoFigures("the database has no such job") from exc
            if result is None:
                raise NoFigures("it has not ended")
            if baseline is None or not result.dispatch:
                raise NoFigures(f"it ended as {result.state.value}, without a dispatch table")
            candidates = CandidateRepository(session).of_job(id_, with_templates=True)
            return cls(result, baseline, {c.id: c.template for c in candidates})

    def served(self, entry: DispatchEntry) -> ConfiguredKernel | None:
        """The kernel that serves a workload; None: the user's own."""
        if entry.candidate is None or entry.configuration is None:
            return None
        return self.templates[entry.candidate].configured(entry.configuration)


class Clocks:
    """The clocks of one job; call `close` in the end."""

    def __init__(self, ended: Ended, device: DeviceInfo, pool: CompilePool) -> None:
        self._ended, self._device = ended, device
        ports = SessionPorts(ChildOpener(device), pool, ReferenceRunner())
        self._session = DeviceSession(ended.result.job, ports)
        self._session.baseline.learn(ended.baseline)
        result = ended.result
        self._is_same_device = (result.device, result.driver) == (device.name, device.driver)

    def close(self) -> None:
        """End the session's processes."""
        self._session.close()

    def rows(self) -> list[Row]:
        """A row of each workload: device times first, then single calls in a process of their own."""
        own, compiled = compiled_baseline(self._session)
        entries = self._ended.result.dispatch
        kernels = {e.workload: k for e in entries if (k := self._ended.served(e)) is not None}
        builds = {k.key: self._session.submit(k) for k in kernels.values()}
        workloads = {w.key: w for w in self._ended.result.job.workloads}
        rows: list[Row] = []
        calls: list[tuple[Row, Calls]] = []
        for entry in entries:
            workload, kernel = workloads[entry.workload], kernels.get(entry.workload)
            sides = {"A": Launched(compiled, launch_size(own, workload, self._device))}
            row = self._row(workload, kernel is not None)
            rows.append(row)
            if kernel is not None:
                built = builds[kernel.key].result()
                if isinstance(built, Rejected):
                    row["problems"].append("the served kernel does not compile here")
                    continue
                sides["B"] = Launched(built, launch_size(kernel, workload, self._device))
            self._on_device(row, workload, sides)
            calls.append((row, Calls(self._session.inputs.plan(workload), sides)))
        self._session.renew()
        found = call_blocks(self._device, [c for _, c in calls])
        for (row, _), blocks in zip(calls, found, strict=True):
            if isinstance(blocks, str):
                row["problems"].append(f"their clock: {blocks}")
            else:
                row["calls"] = call_figures(dict(blocks))
        return rows

    def _row(self, workload: Workload, is_served: bool) -> Row:
        """What the job itself has of a workload."""
        row: Row = {"workload": workload.key, "served": is_served, "device": {}, "problems": []}
        row |= {"compared": [b.name for b in self._session.inputs.plan(workload).mutated], "right": False}
        comparison = next((c for c in self._ended.result.comparisons if c.workload == workload.key), None)
        if comparison is not None:
            kept = ("cache", "speedup", "verdict", "baseline_us", "best_us", "floor_us", "floor_bound")
            row["verified"] = comparison.model_dump(mode="json", include=set(kept))
        if comparison is not None and comparison.floor_us is not None:
            served_us = comparison.best_us if is_served else comparison.baseline_us
            row["floor_share"] = min(1.0, comparison.floor_us / served_us)
        if not self._is_same_device:
            return row
        if is_served and comparison is not None:
            times = {comparison.cache: (comparison.baseline_us, comparison.best_us)}
            if comparison.other_baseline_us is not None and comparison.other_best_us is not None:
                (other,) = {"hot", "cold"} - {comparison.cache}
                times[other] = (comparison.other_baseline_us, comparison.other_best_us)
            row["device"] = {c: _pair(*of, "verification") for c, of in times.items()}
        timing = next((t for t in self._ended.baseline.timings if t.workload == workload.key), None)
        if not is_served and timing is not None:
            known = {"hot": timing.hot, "cold": timing.cold}
            row["device"] = {
                c: _pair(s.median_us, s.median_us, "baseline") for c, s in known.items() if s is not None
            }
        return row

    def _on_device(self, row: Row, workload: Workload, kernels: Mapping[str, Launched]) -> None:
        """Check the kernels whole, and take the device times that are missing."""
        session = self._session
        try:
            handles = {n: session.device(workload).load(k.compiled) for n, k in kernels.items()}
            loaded = {n: LoadedKernel(h, workload, kernels[n].size) for n, h in handles.items()}
            errors = {n: session.checker.check(one, whole=True, repeat=True) for n, one in loaded.items()}
            row["problems"] += [f"{n}: {_words(e)}" for n, e in errors.items() if isinstance(e, Rejected)]
            row["right"] = not row["problems"]
            row["errors"] = {n: None if isinstance(e, Rejected) else e for n, e in errors.items()}
            sides = {n: TimedSide(session, one) for n, one in loaded.items()}
            for cache in CacheState:
                if cache.value not in row["device"]:
                    row["device"][cache.value] = _timed(sides, cache)
            for handle in handles.values():
                session.device(workload).unload(handle)
            session.release(workload)
            session.expected.forget(workload)
        except NoFigures as exc:
            row["problems"].append(str(exc))
        except InvalidInput:
            row["problems"].append("the reference is of no use here")
        except KernelRefused as exc:
            row["problems"].append(f"refused: {exc}"[:300])
        except ChildDied as exc:
            row["problems"].append(f"ended its process: {exc}"[:300])
            session.renew(faulted=True)


def _timed(sides: Mapping[str, TimedSide], cache: CacheState) -> Row:
    """Device times by alternating blocks, of each of which a launch is checked.

    Raises:
        NoFigures: one is wrong.
    """
    plan = block_plan(cache)
    blocks = {n: side.block(plan) for n, side in sides.items()}
    timed = interleaved(winner_blocks(DEVICE_PAIRS, seed=0), blocks["A"], blocks.get("B", blocks["A"]), None)
    if isinstance(timed, Rejected):
        raise NoFigures(f"device time, {cache.value}: {_words(timed)}")
    base, best = (summarise([s for b in timed.samples[n] for s in b], 1).median_us for n in "AB")
    return _pair(base, best if "B" in sides else base, "here")


def _pair(base_us: float, best_us: float, origin: str) -> Row:
    return {"base_us": base_us, "best_us": best_us, "ratio": base_us / best_us, "from": origin}


def _words(rejected: Rejected) -> str:
    """A rejection without what a compiler quoted."""
    said = "" if rejected.stage is Stage.COMPILE else f": {rejected.reason}"
    return f"{rejected.stage.value}{said}"[:300]


def measured(ended: Ended, device: DeviceInfo, pool: CompilePool) -> Row:
    """The figures of one job."""
    result = ended.result
    clocks = Clocks(ended, device, pool)
    try:
        rows = clocks.rows()
    finally:
        clocks.close()
    about = {"device": result.device, "driver": result.driver, "speedup": result.speedup or 1.0}
    return about | {"rows": rows, "summary": summary(rows)}


def job_of(name: str, known: Mapping[str, str], figures: Callable[[str], Row]) -> Row:
    """The figures of a job by its name, or why it has none.

    Args:
        known: ids by name.
        figures: those of an id.
    """
    try:
        if name not in known:
            raise NoFigures("it was not posted")
        return figures(known[name])
    except NoFigures as exc:
        return {"failed": str(exc)}
    except Exception as exc:  # noqa: BLE001  the other jobs' figures are not lost to it
        # A message may quote the source.
        print(f"{name}: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
        return {"failed": f"{type(exc).__name__}, see the terminal"}


@contextmanager
def database_of(state: Path) -> Iterator[Database]:
    """The database of a state folder."""
    path = state / "data" / "warpsmith.db"
    if not path.exists():
        raise SystemExit(f"{path} does not exist")
    url = f"sqlite:///{path.absolute()}"
    migrate.upgrade(url)
    database = Database(url)
    try:
        yield database
    finally:
        database.dispose()


def write(record: Mapping[str, Any], out: Path) -> None:
    """The record as JSON, and beside it as a page."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    out.with_suffix(".md").write_text(page(dict(record)))


def main() -> int:
    """See the module's text. Exits with 1 if a job has no figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--state", type=Path, required=True, help="folder of benchmarks.agents.gpu")
    parser.add_argument("--jobs", nargs="+", help="names of jobs; all without it")
    parser.add_argument("--backend", type=Backend, default=Backend.CUDA)
    parser.add_argument("--out", type=Path, required=True, help="FILE.json; the page is FILE.md")
    options = parser.parse_args()
    with database_of(options.state) as database:
        known = json.loads((options.state / "jobs.json").read_text())
        device = first_device(options.backend)
        record = head(device, "python -m benchmarks.agents.clock " + " ".join(sys.argv[1:]))
        calls = options.state / "calls.jsonl"
        record["tuned_by"] = [json.loads(c) for c in calls.read_text().splitlines()] if calls.exists() else []
        record |= {"clock": "events" if device.backend is Backend.CUDA else "the host's clock"}
        record |= {"protocol": {"warm_up": WARM_UP, "timed": TIMED, "pairs": PAIRS}, "jobs": {}}
        pool = CompilePool()
        try:
            for name in options.jobs or known:
                job = job_of(name, known, lambda id_: measured(Ended.read(database, id_), device, pool))
                record["jobs"][name] = job
                write(record, options.out)
                print(json.dumps({"job": name, **job.get("summary", job)}), flush=True)
        finally:
            pool.close()
    return int(any("failed" in job for job in record["jobs"].values()))


if __name__ == "__main__":
    sys.exit(main())
