"""Knowledge of the baseline: cases on which it is right, its errors, and the ceilings of the device."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from warpsmith.domain.device import Ceilings
from warpsmith.domain.jobs.job import Workload
from warpsmith.domain.jobs.plan import Family
from warpsmith.tuning.execution.session_ports import Case, as_case
from warpsmith.tuning.tasks import BaselineResult, CheckedCase


@dataclass
class BaselineKnowledge:
    """Empty until `learn`."""

    ceilings: Ceilings | None = None
    """Ceilings of the device; None: not measured, so no time is too short."""
    sizes: dict[str, dict[str, float]] = field(default_factory=dict)
    """Typical size of outputs by workload key and name; see `ExpectedOutputs.sizes`."""
    own_globals: frozenset[str] = frozenset()
    """Device variables that the user's kernel has."""
    own_telling: frozenset[str] = frozenset()
    """Telling words that the user's kernel uses."""
    _cases: dict[tuple[str, Family, int], CheckedCase] = field(default_factory=dict)

    def learn(self, baseline: BaselineResult) -> None:
        """Take over what the user's kernel was found to be right on, and how exactly."""
        self._cases = {
            (Workload(dimensions=c.dimensions).key, c.family, c.variant): c for c in baseline.cases
        }
        self.sizes = {
            w: c.sizes for (w, family, _), c in self._cases.items() if family is not Family.EDGE_CASE
        }
        self.own_globals = frozenset(baseline.globals)
        self.own_telling = frozenset(baseline.telling)
        self.ceilings = baseline.ceilings

    @property
    def cases(self) -> Sequence[CheckedCase]:
        """All on which the user's kernel is right."""
        return tuple(self._cases.values())

    @property
    def missed(self) -> dict[str, float]:
        """Share of each integer output in which the user's kernel may be a step off: `CheckedCase.missed`."""
        found: dict[str, float] = {}
        for case in self._cases.values():
            found |= {n: max(share, found.get(n, 0.0)) for n, share in case.missed.items()}
        return found

    @property
    def is_steady(self) -> bool:
        """True if no two runs of the user's kernel on the same inputs differed."""
        return all(c.spread == 0.0 for c in self._cases.values())

    def known(self, of: Workload | Case) -> CheckedCase | None:
        """Result of the user's kernel on such inputs; None if it was not tried or was not right."""
        case = as_case(of)
        # What holds of one draw of another family holds of all of them.
        variant = case.variant if case.family is Family.EDGE_CASE else 0
        return self._cases.get((case.workload.key, case.family, variant))

    def families_of(self, workload: Workload) -> list[Family]:
        """Families of a workload's inputs, without edge cases, in which the user's kernel is right."""
        known = (family for key, family, _ in self._cases if key == workload.key)
        return [family for family in known if family is not Family.EDGE_CASE]
