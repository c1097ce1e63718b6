"""Caches of a worker between the tasks of a job, in memory only: the seed of its inputs, and references.

Nothing here is stored, and nothing is sent but the seed, to the children that draw inputs from it. The
verification has a seed of its own, so that what is published never rests on inputs that the search had.
"""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.jobs.plan import WorkloadPlan
from warpsmith.errors import InvalidInput
from warpsmith.tuning.ports import ReferencePort
from warpsmith.verify.run_report import Array, ReferenceCase

MOST_SEEDS = 256
"""Limit on the jobs whose seeds are cached; a job beyond it gets another one."""
SEED_BITS = 48
MEMORY_SHARE = 8
"""The cached references take at most this fraction of the machine's memory: one part of so many."""

_Key = tuple[str, str, WorkloadPlan]


@dataclass
class JobSeeds:
    """The seed of the inputs with which a job is measured and searched, by job."""

    _seeds: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def of(self, job_id: str) -> int:
        """The job's seed; drawn when it is first asked for, and again after a restart."""
        seed = self._seeds.pop(job_id, None)
        self._seeds[job_id] = secrets.randbits(SEED_BITS) if seed is None else seed
        if len(self._seeds) > MOST_SEEDS:
            self._seeds.popitem(last=False)
        return self._seeds[job_id]


class CachedReferences:
    """Implements `ReferencePort` over another one, and caches the latest outputs up to a number of bytes.

    Cached are outputs of draws that tasks of a job share; a further draw (`WorkloadPlan.variant`) is made for
    one task and never asked for again. The cached arrays are read-only, since every task gets the same ones.
    """

    def __init__(self, inner: ReferencePort, most_bytes: int) -> None:
        self._inner = inner
        self._most_bytes = most_bytes
        self._cached: OrderedDict[_Key, Mapping[str, Array]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Bytes of the cached outputs."""
        return self._bytes

    def numpy_many(
        self, source: str, function: str, cases: Sequence[ReferenceCase]
    ) -> Sequence[Mapping[str, Array] | InvalidInput]:
        """See `ReferencePort.numpy_many`; cached outputs are not computed again."""
        known = [self._known((source, function, plan)) for plan, _ in cases]
        missing = [c for c, outputs in zip(cases, known, strict=True) if outputs is None]
        computed = self._inner.numpy_many(source, function, missing) if missing else ()
        for (plan, _), outputs in zip(missing, computed, strict=True):
            if not isinstance(outputs, InvalidInput) and plan.variant == 0:
                self._cache((source, function, plan), outputs)
        rest = iter(computed)
        return [next(rest) if outputs is None else outputs for outputs in known]

    def halt(self) -> None:
        """See `ReferencePort.halt`."""
        self._inner.halt()

    def go_on(self) -> None:
        """See `ReferencePort.go_on`."""
        self._inner.go_on()

    def _known(self, key: _Key) -> Mapping[str, Array] | None:
        with self._lock:
            found = self._cached.get(key)
            if found is not None:
                self._cached.move_to_end(key)
            return found

    def _cache(self, key: _Key, outputs: Mapping[str, Array]) -> None:
        for array in outputs.values():
            array.flags.writeable = False
        with self._lock:
            self._bytes += _bytes(outputs) - _bytes(self._cached.pop(key, {}))
            self._cached[key] = outputs
            while self._bytes > self._most_bytes:
                self._bytes -= _bytes(self._cached.popitem(last=False)[1])


def _bytes(outputs: Mapping[str, Array]) -> int:
    return sum(array.nbytes for array in outputs.values())
