"""The dispatch table of a result, for every shape; `tuning.winners.shape_boxes` says what serves a shape that
is no workload."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warpsmith.domain.expressions import Value
from warpsmith.domain.jobs.job import Job
from warpsmith.domain.jobs.launch_size import LaunchSize, evaluated, evaluated_launch
from warpsmith.domain.templates.outcome import CheckedShape
from warpsmith.domain.templates.space import Configuration, Constraint, Space, allows, configuration_key
from warpsmith.domain.templates.template import Template
from warpsmith.errors import ExpressionError
from warpsmith.http_models import DispatchEntry, DispatchLaunch, JobResult
from warpsmith.tuning.session.launch_limits import beyond_limits
from warpsmith.tuning.winners.shape_boxes import DispatchRow, Shape, confirmed, server_of, table_boxes

_Name = tuple[str, str]


def launches_of(entry: DispatchEntry) -> tuple[DispatchLaunch, ...]:
    """The launches of a sequence, or the only one, which takes all arguments."""
    if entry.launches:
        return entry.launches
    only = DispatchLaunch(
        entry=entry.entry,
        arguments=(),
        grid=entry.grid,
        block=entry.block,
        shared_bytes=entry.shared_bytes,
        local_bytes=entry.local_bytes,
        launch=entry.launch,
        local_arguments=entry.local_arguments,
    )
    return (only,)


@dataclass(frozen=True)
class ServingKernel:
    """A tuned kernel of the dispatch table, or the user's kernel."""

    entry: DispatchEntry
    configuration: Configuration
    constraints: tuple[Constraint, ...]


def _name(candidate: str, configuration: Configuration) -> _Name:
    """Identity of a tuned kernel: its candidate and its configuration."""
    return candidate, configuration_key(configuration)


class Lookup:
    """The dispatch table of a result, for every shape.

    Raises:
        ValueError: the job ended before its device was known.
    """

    def __init__(self, result: JobResult) -> None:
        entries = {e.workload: e for e in result.dispatch}
        if result.limits is None:
            raise ValueError("the result does not say what its device can take; tune the job again")
        self.job: Job = result.job
        self.limits = result.limits
        self.own = Template(kernel=self.job.kernel, space=self.job.space).configured(self.job.space.defaults)
        self.dimensions = tuple(sorted(result.job.workloads[0].dimensions))
        self.servers: list[ServingKernel] = []
        self.table: dict[Shape, int | None] = {}
        spaces = {c.id: c.space for c in result.candidates}
        numbers: dict[_Name, int] = {}
        rows: list[DispatchRow] = []
        for workload in (w for w in result.job.workloads if w.key in entries):
            entry = entries[workload.key]
            number = self._number(entry, numbers, spaces)
            shape = self.shape(workload.dimensions)
            self.table[shape] = number
            rows.append(DispatchRow(workload.key, shape, number, {**entry.searched, **entry.speedups}))
        self.checked: list[tuple[CheckedShape, int]] = [
            (c, numbers[name])
            for c in result.between
            if (name := _name(c.candidate, c.configuration)) in numbers
        ]
        """Shapes between workloads on which servers were right and faster, with their numbers."""
        widths = {c.workload: c.aa_width for c in result.comparisons}
        passed = [(self.shape(c.dimensions), number) for c, number in self.checked]
        self.boxes = confirmed(table_boxes(rows, widths), passed)

    def _number(
        self, entry: DispatchEntry, numbers: dict[_Name, int], spaces: Mapping[str, Space]
    ) -> int | None:
        """Number of the kernel that serves an entry, which is added to `servers` once; None: the baseline."""
        if entry.candidate is None or entry.configuration is None:
            return None
        number = numbers.setdefault(_name(entry.candidate, entry.configuration), len(self.servers))
        if number == len(self.servers):
            constraints = spaces[entry.candidate].constraints
            self.servers.append(ServingKernel(entry, entry.configuration, constraints))
        return number

    def shape(self, dimensions: Mapping[str, int]) -> Shape:
        """The values of the dimensions, in the order of `dimensions`."""
        return tuple(dimensions[name] for name in self.dimensions)

    def pick(self, dimensions: Mapping[str, int]) -> int | None:
        """Number in `servers` for a shape; None: the baseline."""
        shape = self.shape(dimensions)
        if shape in self.table:
            return self.table[shape]
        number = server_of(shape, self.boxes)
        return number if number is not None and self._fits(number, dimensions) else None

    def size(self, number: int | None, dimensions: Mapping[str, int]) -> LaunchSize:
        """The launches of a server for a shape, as numbers.

        Args:
            number: what `pick` gives.

        Raises:
            ExpressionError: they cannot be evaluated.
        """
        scope = self._scope(number, dimensions)
        if number is None:
            return evaluated(self.own.kernel, scope)
        entry = self.servers[number].entry
        first, *then = (evaluated_launch(s.launch, scope, s.local_arguments) for s in launches_of(entry))
        scratch = tuple(a.bytes_expression.integer(scope) for a in entry.scratch_arguments)
        return replace(first, then=tuple(then), scratch_bytes=scratch)

    def _scope(self, number: int | None, dimensions: Mapping[str, int]) -> dict[str, Value]:
        configuration = self.own.configuration if number is None else self.servers[number].configuration
        return {**self.limits.scope(), **dimensions, **configuration}

    def _fits(self, number: int, dimensions: Mapping[str, int]) -> bool:
        constraints = self.servers[number].constraints
        try:
            if allows(constraints, self._scope(number, dimensions)) is not None:
                return False
            return not beyond_limits(self.size(number, dimensions), self.limits)
        except ExpressionError:
            return False
