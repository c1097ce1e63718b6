"""A setup over the fake device of `testbed.fakes`, for real databases and real processes."""

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.fakes import fake_ports
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.templates.space import Configuration, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.tuning.ports import Searcher
from warpsmith.tuning.session.device_session import SessionPorts
from worker.device.device_setup import History, Search


def model(configuration: Configuration, workload: str) -> float:
    """Best at the largest block and count; the default (64, 1) takes 100 µs."""
    block, per = int(configuration["BLOCK"]), int(configuration["PER"])
    return float(100.0 * (64 / block) ** 0.5 / per**0.25)


def _fault(configuration: Configuration) -> str:
    """Kernels other than the job's, those that measure ceilings, do not compile here."""
    if "PER" not in configuration:
        return "compile"
    return "wrong" if configuration["PER"] == 8 else ""


@dataclass
class GridSearcher(Searcher):
    """All configurations in order."""

    waiting: list[Configuration]
    told: dict[str, float | None] = field(default_factory=dict)

    def ask(self, count: int) -> Sequence[Configuration]:
        asked, self.waiting = self.waiting[:count], self.waiting[count:]
        return [c for c in asked if configuration_key(c) not in self.told]

    def tell(self, configuration: Configuration, value: float | None) -> None:
        self.told[configuration_key(configuration)] = value
        self.waiting = [c for c in self.waiting if configuration_key(c) not in self.told]


@dataclass
class FakeSetup:
    """Optionally slow, and writing down every configuration it times."""

    trial_s: float = 0.0
    ledger: Path | None = None
    compile_ahead: int = 2
    ports: SessionPorts = field(init=False)

    def __post_init__(self) -> None:
        def slow(configuration: Configuration, workload: str) -> float:
            time.sleep(self.trial_s)
            if self.ledger is not None:
                with self.ledger.open("a") as file:
                    file.write(f"{os.getpid()} {configuration_key(configuration)} {workload}\n")
            return model(configuration, workload)

        self.ports = fake_ports(slow, _fault)[0]

    def search(
        self,
        job: Job,
        template: Template,
        history: History,
        unfinished: Sequence[Configuration] = (),
        starts: Sequence[Configuration] = (),
        noise: float = 0.0,
    ) -> Search:
        names = [p.name for p in template.space.parameters]
        values = [p.values for p in template.space.parameters]
        every = [dict(zip(names, combination, strict=True)) for combination in itertools.product(*values)]
        first = [*unfinished, *starts]
        searcher = GridSearcher([*first, *(c for c in every if c not in first)])
        for configuration, value in history():
            searcher.tell(configuration, value)
        return Search(searcher, len(every))
