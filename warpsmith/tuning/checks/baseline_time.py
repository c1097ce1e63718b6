"""What a baseline leaves out where launches are long, to take no more than its share of the budget."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpsmith.domain.plan import TimingPlan, TimingSamples
from warpsmith.tuning.session.session_ports import Case

SHARE = 0.25
"""Of the job's seconds, for the launches of its baseline."""
TIMING_SHARE = 0.15
"""Of what a workload has left, for its timings in one cache state."""
NOISE_SHARE = 0.5
"""Of what is left, for the kernel against itself."""
LEAST_PAIRS = 3
"""Block pairs without which there is no interval."""
LONG_LAUNCH_S = 0.02
LONG_REFERENCE_S = 3.0
"""Where launches and references are shorter launches alone count, so that no busy machine has a quick kernel
checked less; else everything that a baseline takes."""
CHECK_LAUNCHES = 2


@dataclass
class BaselineTime:
    """Seconds that a baseline has left.

    Args:
        budget_s: of the job.
        parts: workloads.
        own: the user's kernel is its own reference, which is one more launch a case.
    """

    budget_s: float
    parts: int
    own: bool
    left_out: list[str] = field(default_factory=list)
    """In words."""
    launch_s: float = 0.0
    """Of the workload that was timed last."""
    sample_s: float = 0.0
    """Of a sample of it."""
    reference_s: float = 0.0
    """Of one case."""
    check_s: float = 0.0
    """Of one case, with all that belongs to it but the reference."""
    _launches_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    @property
    def is_slow(self) -> bool:
        """Whether launches or references are long."""
        return self.launch_s >= LONG_LAUNCH_S or self.reference_s >= LONG_REFERENCE_S

    @property
    def words(self) -> str:
        """What is long."""
        reference = f" and its reference {self.reference_s:.2g} s"
        slow = self.reference_s >= LONG_REFERENCE_S
        return f"a launch takes {self.launch_s:.2g} s{reference if slow else ''}"

    @property
    def spent_s(self) -> float:
        """What the baseline has taken so far, of what counts."""
        return time.monotonic() - self._began if self.is_slow else self._launches_s

    @property
    def left_s(self) -> float:
        """May be below 0: some things are done whatever they take."""
        return SHARE * self.budget_s - self.spent_s

    @property
    def case_s(self) -> float:
        """What a case of the workload that was timed last takes."""
        launches_s = (CHECK_LAUNCHES + self.own) * self.launch_s
        return max(launches_s, self.check_s) + self.reference_s if self.is_slow else launches_s

    def plan(self, plan: TimingPlan) -> TimingPlan:
        """How a workload is timed in one cache state."""
        enough_s = min(plan.enough_s, TIMING_SHARE * max(0.0, self.left_s) / self.parts)
        return TimingPlan(plan.cache, plan.samples, plan.launches, enough_s=enough_s)

    def timed(self, samples: TimingSamples) -> None:
        """A workload was timed, for the first time or in another cache state."""
        self.launch_s = max(samples.samples_us) * 1e-6
        self.sample_s = self.launch_s * samples.launches
        self._launches_s += self._timing_s(len(samples.samples_us))

    def checked(self) -> None:
        """The workload's own case, and that of another draw, were checked before it was timed."""
        self._launches_s += self.case_s + self.own * self.launch_s

    def times_again(self, samples: TimingSamples) -> bool:
        """Whether the other cache state is timed as well."""
        if self._timing_s(len(samples.samples_us)) <= TIMING_SHARE * self.left_s / self.parts:
            return True
        self._leave_out("only the cache state of the objective was timed")
        return False

    def pairs(self, most: int, plan: TimingPlan) -> int:
        """Block pairs of the kernel against itself; counted as spent."""
        pair_s = self._pair_s(plan)
        count = max(LEAST_PAIRS, min(most, int(NOISE_SHARE * self.left_s / pair_s)))
        if count < most:
            self._leave_out(f"the noise was taken from {count} pairs of blocks, not {most}")
        self._launches_s += count * pair_s
        return count

    def least_s(self, plan: TimingPlan) -> float:
        """What a baseline takes at least, as far as its first workload shows."""
        return self.spent_s + LEAST_PAIRS * self._pair_s(plan) + 2 * self.case_s

    def families(self, cases: Sequence[Case]) -> list[Case]:
        """Other inputs of the workload that was timed last, by lot; counted as spent."""
        share_s = self.left_s / (self.parts + 1)
        count = len(cases) if self.case_s * len(cases) <= share_s else max(1, int(share_s / self.case_s))
        if count < len(cases):
            self._leave_out(f"{count} of {len(cases)} other kinds of inputs were tried")
        chosen = random.SystemRandom().sample(list(cases), min(count, len(cases)))
        self._launches_s += len(chosen) * self.case_s
        return [case for case in cases if case in chosen]

    def neighbours(self, cases: Sequence[Case], size: Callable[[Case], float]) -> list[Case]:
        """Other shapes: all, or the small ones and one at least.

        Args:
            size: of a case over that of the workload that was timed last.
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
        """A workload is done."""
        self.parts = max(1, self.parts - 1)

    def _pair_s(self, plan: TimingPlan) -> float:
        return 2 * self._timing_s(plan.samples_of(self.sample_s * 1e6))

    def _timing_s(self, samples: int) -> float:
        """Of so many samples, and of the launch before them."""
        return samples * self.sample_s + self.launch_s

    def _leave_out(self, words: str) -> None:
        if words not in self.left_out:
            self.left_out.append(words)
