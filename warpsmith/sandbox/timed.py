"""Looks at one random launch among those that are timed. Runs in the device child."""

import secrets

from warpsmith.domain.plan import Family, TimingPlan
from warpsmith.sandbox.buffers import DISTINCT_VARIANTS, WorkloadBuffers
from warpsmith.sandbox.frames import Blob


class TimedWatch:
    """Implements `backends.base.Watch`: restores in-place data, and keeps a random launch's outputs.

    Before a random sample the outputs of a random buffer set are partly spoiled and, where that is
    cheap, its inputs are other ones by chance; after it, what the kernel left there is read. No kernel
    can tell that sample from the others, and all of them count.
    """

    def __init__(self, buffers: WorkloadBuffers, plan: TimingPlan, sets: int) -> None:
        self.outputs: list[Blob] = []
        self.guards: list[str] = []
        self.changed: list[str] = []
        self.other = False
        """Whether the launch had the other inputs."""
        self.seen = False
        self._buffers = buffers
        self._check = plan.check
        self._sets = sets
        self._turn = secrets.randbelow(plan.samples) if plan.check is not None else None
        self._index = 0
        self._redrawn = False

    def before(self, sample: int | None, launches: int) -> None:
        """See `Watch.before`."""
        if self._buffers.in_place:
            self._buffers.restore(self._sets)
        if self._check is None or sample is None or sample != self._turn:
            return
        used = min(self._sets, max(1, launches))
        chosen = self._check.redrawn or bool(secrets.randbits(1))
        self._redrawn = self._buffers.redrawn_cheaply and chosen
        if self._redrawn:
            self._index = secrets.randbelow(used)
            self.other = self._check.other is not None
            self._buffers.redraw(self._index, *self._values())
        else:
            # These hold the values that are expected, and the answer to them from earlier launches.
            own = range(0, used, DISTINCT_VARIANTS)
            self._index = own[secrets.randbelow(len(own))]
        self._buffers.scratch(self._index, self._check.ranges)

    def after(self, sample: int) -> None:
        """See `Watch.after`."""
        if self._check is None or sample != self._turn:
            return
        buffers, index = self._buffers, self._index
        ranges = self._check.ranges
        self.outputs = [buffers.read(b.name, ranges[b.name], index) for b in buffers.plan.mutated]
        self.guards = buffers.guard_violations(index)
        family, variant = self._values()
        self.changed = buffers.changed_inputs(False, index, family, variant)
        if self._redrawn:
            buffers.undo_redraw(index)
        self.seen = True

    def _values(self) -> tuple[Family, int]:
        if self.other and self._check is not None and self._check.other is not None:
            return self._check.other
        return Family.DECLARED, 0
