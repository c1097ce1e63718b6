"""Variables of a program that the job fills: inputs, of which a program has one copy. In the device child.

Buffer sets rotate, and a symbol cannot, so it is filled anew before every launch that is looked at and before
every timed sample: what a launch leaves there reaches no later sample.
"""

from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.backends.base import Array, Program
from warpsmith.domain.jobs.plan import BufferPlan, Family

Values = Callable[[BufferPlan, int, Family], Array]
"""Values of an input: of which buffer, which variant and which family."""


class Symbols:
    """The symbols of one workload in one program."""

    def __init__(self, program: Program, plans: Sequence[BufferPlan], values: Values) -> None:
        self._program = program
        self._plans = plans
        self._values = values
        self._written: dict[str, bytes] = {}

    def write(self, family: Family = Family.DECLARED, variant: int = 0) -> None:
        """Fill all of them.

        Raises:
            LaunchRefused: the program lacks one, or has it with another size.
        """
        for plan in self._plans:
            data = self._values(plan, variant, family).view(np.uint8)
            self._program.write_symbol(plan.name, data)
            self._written[plan.name] = data.tobytes()

    def changed(self) -> list[str]:
        """Names of symbols that no longer hold the values written last."""
        return [name for name, data in self._written.items() if self._program.read_symbol(name) != data]
