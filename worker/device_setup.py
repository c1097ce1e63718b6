"""Puts the real ports together: compile pool, device children, reference child, searchers."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from warpsmith.domain.device import Backend, DeviceInfo
from warpsmith.domain.job import Job
from warpsmith.domain.space import Configuration
from warpsmith.domain.template import Template
from warpsmith.errors import Unavailable
from warpsmith.search import enumerate_space, launched, make_searcher
from warpsmith.settings import Settings
from warpsmith.tuning.ports import CompilerPort, Searcher
from warpsmith.tuning.session.device_session import DeviceSession, SessionPorts
from warpsmith.tuning.trials.lazy_searcher import LazySearcher
from worker.compile_cache import ArtifactStore, CachedCompiler
from worker.device_lock import device_lock
from worker.fleet_compiler import FleetCompiler

if TYPE_CHECKING:
    from warpsmith.sandbox import CompilePool

LIBRARIES_BYTES = 4 << 30
"""Address space of a child beside what its job holds: libraries, stacks, a reference's own temporaries."""
LEAST_GAIN, MOST_GAIN_LEFT = 0.001, 0.003
"""Bounds of the relative gain, to be expected of one more trial, below which a search ends."""
NOISE_SHARE = 0.2
"""Of the device's noise: many trials can add up to what one cannot."""

History = Callable[[], Sequence[tuple[Configuration, float | None]]]
"""Finished trials of a search, in order; None where a configuration was rejected."""


Fleet = Callable[[CompilerPort, int], FleetCompiler]
"""Makes a compiler of one that compiles so many kernels at once."""


@dataclass(frozen=True)
class Search:
    """A searcher that has heard of everything finished before."""

    searcher: Searcher
    feasible: int
    """Exact number of feasible configurations."""


class DeviceSetup(Protocol):
    """A device with all that is needed to work on it."""

    ports: SessionPorts

    @property
    def compile_ahead(self) -> int:
        """Configurations that are worth compiling while one is on the device, at most."""
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
            history: asked for once, when the searcher is needed; it proposes none of these again.
            unfinished: what it proposed before and was never told of; this comes before anything else.
            starts: what is worth a try first, by what other searches found.
            noise: of the device, as a share of a time; less than a part of it is no gain.
        """
        ...


class Holding(Protocol):
    """Hears of a wait for the device, and of its end."""

    def waits(self, words: str) -> None:
        """Called while the device is not free; what it raises ends the wait."""
        ...

    def has(self) -> None:
        """Called when it is held."""
        ...


@contextmanager
def hold_device(setup: DeviceSetup, hold: Holding) -> Iterator[None]:
    """While nobody else on this machine uses the device."""
    with device_lock(setup.ports.opener.info, hold.waits):
        hold.has()
        yield


@contextmanager
def open_session(setup: DeviceSetup, job: Job, hold: Holding) -> Iterator[DeviceSession]:
    """A session with a secret seed of its own, while nobody else on this machine uses the device."""
    with hold_device(setup, hold):
        made = DeviceSession(job, setup.ports)
        try:
            yield made
        finally:
            made.close()


class PortsSetup:
    """A device behind its ports, searched by the searcher that the job names."""

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
        least = min(max(LEAST_GAIN, NOISE_SHARE * noise), MOST_GAIN_LEFT)

        def make() -> Searcher:
            made = make_searcher(
                job.searcher,
                feasible,
                job.seed,
                history=history(),
                warm_starts=(*starts, *template.warm_starts),
                least_gain=least if job.budget.stop_early else 0.0,
                launched=launched(template.kernel.launch, feasible, scopes, warp),
            )
            made.finish_first(unfinished)
            return made

        return Search(LazySearcher(make), feasible.count)


class RealDeviceSetup(PortsSetup):
    """One device of this machine: children that compile, run and compute references.

    Args:
        fleet: has compile nodes help compilers of this machine, of which there are so many.
    """

    def __init__(self, settings: Settings, device: DeviceInfo, fleet: Fleet | None = None) -> None:
        from warpsmith.measure.nvml import nvml_for
        from warpsmith.sandbox import ChildOpener, ReferenceRunner, sanitizer_for
        from warpsmith.sandbox.ncu_host import profiler_for

        workers = settings.compile_workers or os.cpu_count() or 1
        pool = compile_pool(settings, workers)
        if not device.shares_host:
            pool.warm(device.backend)
        helped = None if fleet is None else fleet(pool, workers)
        most = settings.job_memory_bytes and settings.job_memory_bytes + LIBRARIES_BYTES
        opener = ChildOpener(device, settings.run_timeout_s, most)
        nvml = nvml_for(device)
        ports = SessionPorts(
            opener=opener,
            compiler=_kept(helped or pool, settings),
            reference=ReferenceRunner(memory_bytes=most) if most else ReferenceRunner(),
            sanitizer=sanitizer_for(device, opener),
            conditions=nvml,
            energy=nvml,
            counters=profiler_for(device, opener) if settings.ncu else None,
        )
        super().__init__(ports, lambda: 2 * (workers + (helped.slots() if helped else 0)))


def compile_pool(settings: Settings, workers: int) -> "CompilePool":
    """Compile children of this machine."""
    from warpsmith.sandbox import CompilePool

    return CompilePool(workers, settings.compile_timeout_s, settings.permitted_includes())


def _kept(pool: CompilerPort, settings: Settings) -> CompilerPort:
    if settings.artifact_mb == 0:
        return pool
    folder = settings.artifact_dir or settings.data_dir / "artifacts"
    return CachedCompiler(pool, ArtifactStore(folder.absolute(), settings.artifact_mb << 20))


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
    """The real thing; see `RealDeviceSetup`."""
    if device.backend is Backend.REPLAY:
        return ReplaySetup(settings, device)
    return RealDeviceSetup(settings, device, fleet)
