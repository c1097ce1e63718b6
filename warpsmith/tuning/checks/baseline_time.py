"""Limits a baseline with long launches to its share of the budget by leaving out checks."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.jobs.plan import STEADY_LAUNCH_US, TimingPlan, TimingSamples
from warpsmith.tuning.execution.session_ports import Case

SHARE = 0.25
"""Fraction of the job's seconds for the launches of its baseline."""
TIMING_SHARE = 0.15
"""Fraction of a workload's remaining time for its timings in one cache state."""
NOISE_SHARE = 0.5
"""Fraction of the remaining time for timing the kernel against itself."""
LEAST_PAIRS = 3
"""Least number of block pairs for an interval."""
LONG_LAUNCH_S = 0.02
LONG_REFERENCE_S = 3.0
"""Time in seconds above which everything in a baseline counts. If launches and references are shorter, only
launches count, so that a busy machine does not reduce the checks of a quick kernel."""
CHECK_LAUNCHES = 2
GRACE_S = 60.0
"""Seconds beyond the whole budget after which a baseline ends wherever it is between two cases."""
MOST_OVERHEAD = 2.0
"""Limit on `BaselineTime.overhead`: a first timing also allocates what later ones use."""


@dataclass
class BaselineTime:
    """Seconds that a baseline has left.

    Args:
        budget_s: budget of the job in seconds.
        parts: number of workloads.
        own: the user's kernel is its own reference, which takes one more launch per case.
        reserved_s: seconds of what follows the launches.
    """

    budget_s: float
    parts: int
    own: bool
    reserved_s: float = 0.0
    left_out: list[str] = field(default_factory=list)
    """Checks that were left out, in words."""
    launch_s: float = 0.0
    """Launch time of the last timed workload, seconds."""
    sample_s: float = 0.0
    """Sample time of the last timed workload, seconds."""
    reference_s: float = 0.0
    """Reference time of one case, seconds."""
    check_s: float = 0.0
    """Check time of one case without its reference, seconds."""
    overhead: float = 1.0
    """Seconds of the last timing divided by those of its launches: in-place data are restored in between."""
    several: bool = field(init=False)
    """True if the job has more than one workload."""
    _launches_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.several = self.parts > 1

    @property
    def is_slow(self) -> bool:
        """True if launches or references are long."""
        return self.launch_s >= LONG_LAUNCH_S or self.reference_s >= LONG_REFERENCE_S

    @property
    def words(self) -> str:
        """Text that names what is long."""
        reference = f" and its reference {self.reference_s:.2g} s"
        slow = self.reference_s >= LONG_REFERENCE_S
        return f"a launch takes {self.launch_s:.2g} s{reference if slow else ''}"

    @property
    def spent_s(self) -> float:
        """Seconds that count against the limit so far."""
        return time.monotonic() - self._began if self.is_slow else self._launches_s

    @property
    def is_over(self) -> bool:
        """True once the baseline has held the device for longer than the job may at all."""
        return time.monotonic() - self._began > self.budget_s + GRACE_S

    def until_over(self, cases: Iterable[Case]) -> Iterator[Case]:
        """The cases one by one, until the time is over."""
        for case in cases:
            if self.is_over:
                self._leave_out("no further inputs or shapes were tried")
                return
            yield case

    @property
    def left_s(self) -> float:
        """Seconds left; may be negative, since some steps are always done."""
        return SHARE * self.budget_s - self.reserved_s - self.spent_s

    @property
    def case_s(self) -> float:
        """Seconds of a case of the last timed workload."""
        launches_s = (CHECK_LAUNCHES + self.own) * self.launch_s
        return max(launches_s, self.check_s) + self.reference_s if self.is_slow else launches_s

    def plan(self, plan: TimingPlan) -> TimingPlan:
        """Timing plan of a workload in one cache state."""
        enough_s = min(plan.enough_s, TIMING_SHARE * max(0.0, self.left_s) / self.parts)
        return TimingPlan(plan.cache, plan.samples, plan.launches, enough_s=enough_s)

    def timed(self, samples: TimingSamples, took_s: float = 0.0) -> None:
        """Record the timing of a workload, for the first time or in another cache state.

        Args:
            took_s: seconds of the timing with everything around its launches; 0: unknown.
        """
        self.launch_s = max(samples.samples_us) * 1e-6
        self.sample_s = self.launch_s * samples.launches
        self.overhead = 1.0
        launches_s = self._timing_s(len(samples.samples_us))
        self._launches_s += launches_s
        if self.is_slow:
            self.overhead = min(max(1.0, took_s / launches_s), MOST_OVERHEAD)

    def checked(self) -> None:
        """Record that the workload's own case and another draw were checked before timing."""
        self._launches_s += self.case_s + self.own * self.launch_s

    def times_again(self, samples: TimingSamples) -> bool:
        """True if the other cache state is timed as well."""
        if self._timing_s(len(samples.samples_us)) <= TIMING_SHARE * self.left_s / self.parts:
            return True
        self._leave_out("only the cache state of the objective was timed")
        return False

    def pairs(self, most: int, plan: TimingPlan) -> int:
        """Block pairs of the kernel against itself on the last timed workload; counted as spent.

        With several workloads they are none if not even the least fit: a comparison then takes the noise from
        its own blocks.
        """
        left_s = NOISE_SHARE * self.left_s / self.parts
        fitting = (n for n in range(most, LEAST_PAIRS - 1, -1) if self._noise_s(n, plan) <= left_s)
        count = next(fitting, 0 if self.several else LEAST_PAIRS)
        if not count:
            self._leave_out("the noise was left to the comparisons")
            return 0
        if count < most:
            self._leave_out(f"the noise was taken from {count} pairs of blocks, not {most}")
        self._launches_s += self._noise_s(count, plan)
        return count

    def least_s(self, plan: TimingPlan) -> float:
        """Least time of a baseline, estimated from its first workload."""
        return self.spent_s + self.reserved_s + self._noise_s(LEAST_PAIRS, plan) + 2 * self.case_s

    def families(self, cases: Sequence[Case]) -> list[Case]:
        """Further inputs of the last timed workload, at random; counted as spent."""
        share_s = self.left_s / (self.parts + 1)
        count = len(cases) if self.case_s * len(cases) <= share_s else max(1, int(share_s / self.case_s))
        if count < len(cases):
            self._leave_out(f"{count} of {len(cases)} other kinds of inputs were tried")
        chosen = random.SystemRandom().sample(list(cases), min(count, len(cases)))
        self._launches_s += len(chosen) * self.case_s
        return [case for case in cases if case in chosen]

    def neighbours(self, cases: Sequence[Case], size: Callable[[Case], float]) -> list[Case]:
        """Other shapes: all of them, or the small ones and at least one.

        Args:
            size: size of a case divided by that of the last timed workload.
        """
        chosen: list[Case] = []
        spent_s = 0.0
        for case in sorted(cases, key=size):
            spent_s += size(case) * self.case_s
            if spent_s <= self.left_s or not chosen:
                chosen.append(case)
        if len(chosen) < len(cases):
            self._leave_out(f"{len(chosen)} of {len(cases)} other shapes were tried")
        return [case for case in cases if case in chosen]

    def next_part(self) -> None:
        """Start the next workload."""
        self.parts = max(1, self.parts - 1)

    def _noise_s(self, pairs: int, plan: TimingPlan) -> float:
        """Seconds of this number of block pairs."""
        blocks_s = 2 * pairs * self._timing_s(plan.samples_of(self.sample_s * 1e6))
        if self.launch_s * 1e6 < STEADY_LAUNCH_US:
            return blocks_s
        # Only the other process launches once before its first block.
        return blocks_s - (2 * pairs - 1) * self.launch_s * self.overhead

    def _timing_s(self, samples: int) -> float:
        """Seconds of this number of samples and of the launch before them."""
        return (samples * self.sample_s + self.launch_s) * self.overhead

    def _leave_out(self, words: str) -> None:
        if words not in self.left_out:
            self.left_out.append(words)
