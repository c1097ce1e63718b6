"""Checks one random launch among the timed ones. Runs in the device child."""

import secrets
from collections.abc import Sequence

from warpsmith.domain.jobs.job import CacheState
from warpsmith.domain.jobs.memory import DISTINCT_VARIANTS
from warpsmith.domain.jobs.plan import Family, TimingPlan
from warpsmith.sandbox.memory.buffers import WorkloadBuffers
from warpsmith.sandbox.memory.fresh_inputs import OtherMemory
from warpsmith.sandbox.memory.rotation import Pair, left_behind, walked
from warpsmith.sandbox.memory.scratch import Scratch
from warpsmith.sandbox.memory.symbols import Symbols
from warpsmith.sandbox.transport.frames import Blob


class TimedWatch:
    """Implements `backends.base.Watch`: restores in-place data, and keeps the outputs of a random launch.

    Before a random sample, by chance some outputs and some scratch of a random launch are overwritten and its
    inputs are replaced if that is cheap. After the sample, the outputs of that launch are read. No
    kernel can tell this sample from the others, and all samples count. In half of the checks the output is as
    any other launch finds it, the answer to other inputs: overwritten elements would tell a kernel that marks
    its results, or knows what they look like, that this launch is checked.
    """

    def __init__(
        self,
        buffers: WorkloadBuffers,
        plan: TimingPlan,
        pairs: Sequence[Pair],
        scratch: Scratch,
        symbols: Symbols,
        other: OtherMemory,
    ) -> None:
        self.outputs: list[Blob] = []
        self.guards: list[str] = []
        self.changed: list[str] = []
        self.other = False
        """True if the launch had the other inputs."""
        self.seen = False
        self._buffers = buffers
        self._scratch = scratch
        self._symbols = symbols
        self._other = other
        self.samples = plan.samples
        """Number of samples; see `choose_samples`."""
        self._plan = plan
        self._check = plan.check
        self._pairs = pairs
        self._turn: int | None = None
        self._chosen = pairs[0]
        self._redrawn = False

    def choose_samples(self, sample_us: float) -> int:
        """Number of samples for this sample length, fixed before the first sample."""
        self.samples = self._plan.samples_of(sample_us)
        return self.samples

    def before(self, sample: int | None, launches: int) -> None:
        """See `Watch.before`."""
        self._symbols.write()
        if self._buffers.in_place:
            # All sets are restored: a launch may have worked ahead in other sets. The sets launched next are
            # restored first, so that the others displace them from the caches.
            start = 0 if sample is None else sample * launches % len(self._pairs)
            order = [pair.inputs for pair in (*self._pairs[start:], *self._pairs[:start])]
            self._buffers.restore(order)
            self._buffers.poison(order)
        if self._plan.fresh and sample is not None:
            self._refresh(sample, launches)
        if self._check is None or sample is None:
            return
        if self._turn is None:
            self._choose(self._check.redraw, launches)
        if sample != self._turn:
            return
        if self._redrawn:
            self.other = self._check.other is not None
            self._buffers.redraw(self._chosen.inputs, *self._values())
            self._symbols.write(*self._values())
        if self._check.spoiled or not self._finds_another_answer or secrets.randbits(1):
            self._buffers.spoil(self._chosen.outputs, self._check.ranges)
            self._scratch.spoil()

    def _refresh(self, sample: int, launches: int) -> None:
        """Write new inputs for as many samples as no set serves twice, if none of them has begun."""
        # Data that launches change are restored before every sample.
        turns = 1 if self._buffers.in_place else max(1, len(self._pairs) // launches)
        if sample % turns:
            return
        coming = min(turns, self.samples - sample) * launches
        self._buffers.refresh(dict.fromkeys(p.inputs for p in walked(self._pairs, sample, coming)))
        if self._plan.cache is CacheState.COLD:
            self._other.fill_caches()

    def after(self, sample: int) -> None:
        """See `Watch.after`."""
        if self._check is None or sample != self._turn:
            return
        buffers, pair = self._buffers, self._chosen
        ranges = self._check.ranges
        self.outputs = [buffers.read(b.name, ranges[b.name], pair) for b in buffers.plan.mutated]
        self.guards = buffers.guard_violations(pair) + self._scratch.guard_violations()
        family, variant = self._values()
        self.changed = buffers.changed_inputs(False, pair, family, variant) + self._symbols.changed()
        if self._redrawn:
            buffers.undo_redraw(pair.inputs)
        self.seen = True

    def _choose(self, redraw: bool | None, launches: int) -> None:
        """Choose the sample, and the launch in it, that is checked."""
        turns = secrets.SystemRandom().sample(range(self.samples), self.samples)
        if redraw is None:
            # What a sequence keeps in its scratch is the result for inputs that are launched again and again.
            redraw = bool(self._scratch.sizes_bytes) or bool(secrets.randbits(1))
        self._redrawn = redraw and self._buffers.redrawn_cheaply
        for turn in turns:
            left = left_behind(walked(self._pairs, turn, launches))
            # Launches whose values have a known expected result.
            own = [pair for pair in left if pair.inputs % DISTINCT_VARIANTS == 0]
            if own or self._redrawn:
                break
        self._redrawn = self._redrawn or not own
        self._turn, self._chosen = turn, secrets.choice(left if self._redrawn else own)

    @property
    def _finds_another_answer(self) -> bool:
        """True if the launch finds the answer to other inputs in its output: to do nothing is wrong."""
        apart = self._plan.apart and len(self._pairs) > 1 and not self._buffers.in_place
        return self._redrawn or apart

    def _values(self) -> tuple[Family, int]:
        if self.other and self._check is not None and self._check.other is not None:
            return self._check.other
        return Family.DECLARED, 0
