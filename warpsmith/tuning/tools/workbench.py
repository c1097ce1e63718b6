"""Workbench of the tools: the session of a job, its baseline, and words for configurations and refusals."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from warpsmith.domain.jobs.job import Metric
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Outcome, Rejected, Stage
from warpsmith.domain.templates.space import Configuration
from warpsmith.domain.templates.template import ConfiguredKernel, Template
from warpsmith.source.lexing.tokens import comments_blanked
from warpsmith.tuning.objective import time_us
from warpsmith.tuning.session.device_session import DeviceSession
from warpsmith.tuning.tasks import BaselineResult, ToolAnswer
from warpsmith.tuning.timing.drift import DriftWatch
from warpsmith.tuning.trials.energy_pruner import EnergyPruner
from warpsmith.tuning.trials.first_trial import run_trial
from warpsmith.tuning.trials.slice import NO_ENERGY, has_energy

MAX_LOG_CHARACTERS = 3000
"""Limit on a compiler's messages in an answer."""


class Workbench:
    """A device session with the job's baseline.

    Args:
        seconds: after which no further configuration is begun.
    """

    def __init__(self, session: DeviceSession, baseline: BaselineResult, seconds: float) -> None:
        self.session = session
        self.baseline = baseline
        self._ends = time.monotonic() + seconds

    def in_time(self, configurations: Sequence[Configuration], said: list[str]) -> Iterator[Configuration]:
        """The configurations that there is time for, the first in any case.

        Args:
            said: lines of the answer, to which is added how many were left out.
        """
        for place, configuration in enumerate(configurations):
            if place and time.monotonic() > self._ends:
                said.append(f"the other {len(configurations) - place} were not done: the seconds are spent")
                return
            yield configuration

    def gain(self, objective: float) -> str:
        """An objective in words: `1.21x of your kernel's speed`."""
        if self._counts_energy:
            return f"{objective:.2f} of your kernel's energy a launch"
        return f"{1 / objective:.2f}x of your kernel's speed"

    @property
    def _counts_energy(self) -> bool:
        return self.session.job.objective.metric is Metric.ENERGY

    @cached_property
    def _energy(self) -> EnergyPruner | None:
        """Pruner that lets the energy of every configuration be measured; None if the objective is time."""
        if not self._counts_energy:
            return None
        weights = {w.key: w.weight for w in self.session.job.workloads}
        before = {
            t.workload: (self.baseline_us[t.workload], t.energy_mj or 0.0) for t in self.baseline.timings
        }
        return EnergyPruner(weights, before, cuts=False)

    @cached_property
    def _watch(self) -> DriftWatch:
        """Fresh drift watch, which takes every outcome for an apparent best and times it in pairs."""
        watch = DriftWatch(self.session, self.baseline_us)
        watch.prepare()
        return watch

    @cached_property
    def baseline_us(self) -> Mapping[str, float]:
        """Time of the user's kernel by workload key, µs, in the objective's cache state."""
        times = {t.workload: time_us(self.session.job, t) for t in self.baseline.timings}
        return {key: us or 0.0 for key, us in times.items()}

    def kernel(self, template: Template, configuration: Configuration) -> ConfiguredKernel:
        """The kernel of a configuration without its comments, which a compiler's messages would quote."""
        given = template.kernel
        files = {name: comments_blanked(text) for name, text in given.files.items()}
        plain = given.model_copy(update={"source": comments_blanked(given.text), "files": files})
        return template.model_copy(update={"kernel": plain}).configured(configuration)

    def compile(self, template: Template, configuration: Configuration) -> "BenchKernel | Rejected":
        """The kernel of a configuration, compiled and allowed to run."""
        kernel = self.kernel(template, configuration)
        compiled = self.session.compile(kernel)
        if isinstance(compiled, Rejected):
            return compiled
        refused = self.session.checker.binary_refusal(kernel, compiled)
        return BenchKernel(kernel, compiled) if refused is None else refused

    def measure(self, template: Template, configuration: Configuration) -> Outcome:
        """Checked on samples of every workload and timed in pairs with the user's kernel, as trials are.

        Raises:
            InvalidInput: the job's reference cannot be used.
        """
        if self._counts_energy and not has_energy(self.baseline):
            return Rejected(stage=Stage.TIMING, reason=NO_ENERGY)
        kernel = self.kernel(template, configuration)
        compiled = self.session.compile(kernel)
        outcome = run_trial(
            self.session, template, kernel, compiled, self.baseline_us, energy_pruner=self._energy
        )
        return self._watch.confirmed(outcome, kernel, compiled)


@dataclass(frozen=True)
class BenchKernel:
    """A configured kernel and its binary."""

    kernel: ConfiguredKernel
    compiled: Compiled


def told(parts: list[str], ok: bool = True) -> ToolAnswer:
    """An answer of these lines."""
    return ToolAnswer.of(parts, ok)


def named(configuration: Configuration) -> str:
    """`WS_BLOCK=128, WS_ITEMS=4`; without parameters: `as it is`."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items()) or "as it is"


def refused(configuration: Configuration, why: Rejected) -> str:
    """Words for the rejection of a configuration, with the end of the compiler's messages."""
    where = f" at {why.workload}" if why.workload else ""
    words = f"{named(configuration)}: refused ({why.stage.value}{where}): {why.reason}"
    log = why.log.strip()
    if not log or log in why.reason:
        return words
    return f"{words}\nmessages of the compiler:\n{log[:MAX_LOG_CHARACTERS]}"
