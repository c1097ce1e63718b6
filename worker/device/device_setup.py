"""Assembles the real ports: compile pool, device children, reference child, searchers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from warpsmith.domain.device import DeviceInfo
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import Template
from warpsmith.errors import Unavailable
from warpsmith.processes.cores import usable_cores
from warpsmith.search import Hints, enumerate_space, launched, make_searcher
from warpsmith.settings import Settings
from warpsmith.tuning.ports import CompilerPort, Searcher
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.lazy_searcher import LazySearcher
from worker.device.cached_ceilings import CachedCeilings, host_clock_limits
from worker.device.cached_references import MEMORY_SHARE, CachedReferences
from worker.device.compile_cache import ArtifactStore, CachedCompiler
from worker.device.device_lock import device_lock
from worker.device.fleet_compiler import FleetCompiler

if TYPE_CHECKING:
    from warpsmith.sandbox import CompilePool

KEEP_CEILINGS_S = 86400.0
CACHED_REFERENCES_BYTES = 2 << 30
"""Limit on expected outputs in memory, besides a share of the machine's."""
ARTIFACT_BYTES = 1 << 30
"""Size of the folder of compiled kernels."""
LIBRARIES_BYTES = 4 << 30
"""Address space of a child beyond its job's data: libraries, stacks, a reference's own temporaries."""
KEEP_CHILDREN_S, KEEP_ON_DEVICE_S = 20.0, 120.0
"""Seconds for which idle reference children keep their memory: longer than most pauses within a job. One on a
device keeps what its libraries loaded, and is asked again after a search."""
LEAST_NEXT_GAIN, MOST_NEXT_GAIN = 0.001, 0.003
"""Bounds of the relative gain, expected of one more trial, below which a search ends."""
NOISE_SHARE = 0.2
"""Fraction of the noise below which a gain is ignored; small gains add up, so not all of it."""

History = Callable[[], Sequence[tuple[Configuration, float | None]]]
"""Returns finished trials of a search, in order; None: the configuration was rejected."""


Fleet = Callable[[CompilerPort, int], FleetCompiler]
"""Factory: (local compiler, its concurrency) → compiler that also uses compile nodes."""


@dataclass(frozen=True)
class Search:
    """A searcher that has been told all finished trials."""

    searcher: Searcher
    feasible: int
    """Number of feasible configurations; a lower bound if `sampled`."""
    sampled: bool = False
    """True if they took too long to count: a random part of them is searched."""


class DeviceSetup(Protocol):
    """A device with everything that work on it needs."""

    ports: SessionPorts

    @property
    def compile_ahead(self) -> int:
        """Limit on the configurations that are worth compiling while one is on the device."""
        ...

    def search(
        self,
        job: Job,
        template: Template,
        history: History,
        unfinished: Sequence[Configuration] = (),
        starts: Sequence[Configuration] = (),
        noise: float = 0.0,
    ) -> Search:
        """The search of a template.

        Args:
            history: called once, when the searcher is needed; none of these is proposed again.
            unfinished: configurations proposed earlier without a result; they come first.
            starts: first proposals, from other searches.
            noise: relative noise of the device; a gain below a part of it is ignored.
        """
        ...


class Holding(Protocol):
    """Is notified of a wait for the device, and of its end."""

    def waits(self, words: str) -> None:
        """Called while the device is busy; an exception that it raises ends the wait."""
        ...

    def has(self) -> None:
        """Called when the device is acquired."""
        ...


@contextmanager
def hold_device(setup: DeviceSetup, hold: Holding) -> Iterator[None]:
    """While nobody else on this machine uses the device."""
    with device_lock(setup.ports.opener.info, hold.waits):
        hold.has()
        yield


@contextmanager
def open_session(
    setup: DeviceSetup, job: Job, hold: Holding, seed: int | None = None
) -> Iterator[DeviceSession]:
    """Context with a session and exclusive use of the device on this machine.

    Args:
        seed: secret seed of the inputs, which other sessions of the job may share; None: one of its own.
    """
    with hold_device(setup, hold):
        made = DeviceSession(job, setup.ports, seed)
        try:
            yield made
        finally:
            made.close()


class PortsSetup:
    """A device behind its ports, with the searcher that the job names."""

    def __init__(self, ports: SessionPorts, compile_ahead: Callable[[], int]) -> None:
        self.ports = ports
        self._compile_ahead = compile_ahead

    @property
    def compile_ahead(self) -> int:
        """See `DeviceSetup.compile_ahead`."""
        return self._compile_ahead()

    def search(
        self,
        job: Job,
        template: Template,
        history: History,
        unfinished: Sequence[Configuration] = (),
        starts: Sequence[Configuration] = (),
        noise: float = 0.0,
    ) -> Search:
        """See `DeviceSetup.search`."""
        info = self.ports.opener.info
        scopes = [info.scope() | w.scope() for w in job.workloads]
        feasible = enumerate_space(template.space, scopes)
        warp = 1 if info.shares_host else info.limits.warp_size
        least = min(max(LEAST_NEXT_GAIN, NOISE_SHARE * noise), MOST_NEXT_GAIN)

        def make() -> Searcher:
            made = make_searcher(
                job.searcher,
                feasible,
                job.seed,
                history=history(),
                hints=Hints(
                    warm_starts=(*starts, *template.warm_starts),
                    launched=launched(template.kernel.launch, feasible, scopes, warp),
                    known_winners=job.known_winners,
                ),
                least_gain=least if job.budget.stop_early else 0.0,
            )
            made.finish_first(unfinished)
            return made

        return Search(LazySearcher(make), feasible.count, sampled=not feasible.exact)


class RealDeviceSetup(PortsSetup):
    """Device of this machine: children that compile, run and compute references.

    Args:
        fleet: factory for a compiler that also uses compile nodes.

    Attributes:
        compiling_ahead: compiles what references usually call on the device; None: it is there already, or
            there is no library for it.
    """

    compiling_ahead: Thread | None = None

    def __init__(self, settings: Settings, device: DeviceInfo, fleet: Fleet | None = None) -> None:
        from warpsmith.measure.nvml import nvml_for
        from warpsmith.sandbox import ChildOpener, ReferenceRunner, device_references, sanitizer_for
        from warpsmith.sandbox.confinement.confine import machine_memory
        from warpsmith.sandbox.hosts.kept_children import KeptChildren
        from warpsmith.sandbox.hosts.ncu_host import profiler_for

        workers = settings.compile_workers or usable_cores()
        pool = compile_pool(settings, workers)
        # More than one would take the cores from a kernel that another worker runs on them.
        pool.warm(device.backend, 1 if device.shares_host else None)
        helped = None if fleet is None else fleet(pool, workers)
        most = settings.job_memory_bytes and settings.job_memory_bytes + LIBRARIES_BYTES
        opener = ChildOpener(device, settings.run_timeout_s, most)
        kept = KeptChildren(KEEP_CHILDREN_S)
        runner = ReferenceRunner(memory_bytes=most or ReferenceRunner.memory_bytes, kept=kept)
        runner.warm()
        share = min(CACHED_REFERENCES_BYTES, machine_memory() // MEMORY_SHARE)
        kept_there = KeptChildren(KEEP_ON_DEVICE_S)
        on_device = device_references(
            device, kept_there, runner.memory_bytes, settings.data_dir.absolute() / "cupy"
        )
        if on_device is not None:
            on_device.warm()
            self.compiling_ahead = on_device.compile_ahead()
            share //= 2  # of the outputs of each
        reference = CachedReferences(runner, share)
        nvml = nvml_for(device)
        ports = SessionPorts(
            opener=opener,
            compiler=_cached(helped or pool, settings),
            reference=reference,
            sanitizer=sanitizer_for(device, opener),
            conditions=nvml,
            energy=nvml,
            ceilings=CachedCeilings(
                settings.data_dir.absolute() / "ceilings",
                device,
                host_clock_limits if nvml is None else nvml.clock_limits,
                KEEP_CEILINGS_S,
            ),
            counters=profiler_for(device, opener) if settings.ncu else None,
            device_reference=None if on_device is None else CachedReferences(on_device, share),
        )
        opener.warm()
        super().__init__(ports, lambda: 2 * (workers + (helped.slots() if helped else 0)))
        self._pool, self._helped, self._kept_children = pool, helped, (kept, kept_there)

    def close(self) -> None:
        """End the children that compile, and idle ones of references; nothing more can be compiled."""
        for kept in self._kept_children:
            kept.end_all()
        if self._helped is not None:
            self._helped.close()
        self._pool.close()


def compile_pool(settings: Settings, workers: int) -> "CompilePool":
    """Compile children of this machine."""
    from warpsmith.sandbox import CompilePool

    return CompilePool(workers, settings.compile_timeout_s, settings.permitted_includes())


def _cached(pool: CompilerPort, settings: Settings) -> CompilerPort:
    folder = settings.artifact_dir or settings.data_dir / "artifacts"
    return CachedCompiler(pool, ArtifactStore(folder.absolute(), ARTIFACT_BYTES))


class ReplaySetup(PortsSetup):
    """Recorded timings; see `warpsmith.backends.replay`.

    Raises:
        Unavailable: the operator has not enabled them.
    """

    def __init__(self, settings: Settings, device: DeviceInfo) -> None:
        from warpsmith.backends.replay import ReplayCompiler, ReplayOpener, ReplayReference

        if settings.replay_dir is None:
            raise Unavailable("there is no folder of recorded timings; set WARPSMITH_REPLAY_DIR")
        opener = ReplayOpener(device, settings.replay_trial_s)
        ports = SessionPorts(opener, ReplayCompiler(settings.replay_dir), ReplayReference())
        super().__init__(ports, lambda: 1)


def open_setup(settings: Settings, device: DeviceInfo, fleet: Fleet | None = None) -> DeviceSetup:
    """The setup of a real device; see `RealDeviceSetup`."""
    if device.backend.language.is_recorded:
        return ReplaySetup(settings, device)
    return RealDeviceSetup(settings, device, fleet)
