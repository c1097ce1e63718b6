"""The question about a job file that is not complete, and the reply to it."""

from typing import Annotated

from pydantic import Field, StrictInt

from warpsmith.domain.arguments.argument import Argument
from warpsmith.domain.base import Fenced, Frozen, Identifier
from warpsmith.domain.jobs.job import Workload

MOST_WORKLOADS = 8
Extent = Annotated[str | int, Field(union_mode="left_to_right")]
"""An expression over dimensions and parameters, or a number."""
Sizes = dict[Identifier, Annotated[StrictInt, Field(ge=1)]]


class FillReply(Frozen):
    """Facts in the place of guesses; what is empty stays as it is."""

    entry: str = Field(default="", max_length=500)
    """CUDA: the kernel with template arguments, such as `ns::add<float, 8>`."""
    macros: dict[Identifier, str | int | float] = Field(default_factory=dict, max_length=64)
    """Values of macros that nothing defines."""
    arguments: tuple[Argument, ...] = Field(default=(), max_length=128)
    """Whole arguments (also buffers behind structs) that take the place of those of the same name."""
    grid: tuple[Extent, ...] = Field(default=(), max_length=3)
    block: tuple[Extent, ...] = Field(default=(), max_length=3)
    shared_bytes: Extent = ""
    workloads: tuple[Sizes, ...] = Field(min_length=1, max_length=MOST_WORKLOADS)
    """Sizes of every dimension, as programs have them."""
    small: tuple[Sizes, Sizes]
    """Two further sets of small sizes, unequal in every dimension that may vary, for the check."""
    reference: Annotated[str, Fenced()] = Field(default="", max_length=20_000)
    """`def reference(inputs, dims)` in NumPy; empty: the kernel itself is the reference."""
    notes: tuple[Annotated[str, Field(max_length=500)], ...] = Field(default=(), max_length=16)
    """What is uncertain, a sentence each."""

    def small_workloads(self) -> tuple[Workload, ...]:
        """The two sets of small sizes as workloads."""
        return tuple(Workload(dimensions=dict(sizes)) for sizes in self.small)


class FillQuestion(Frozen):
    """A kernel whose job file has guesses."""

    job_file: str
    """The job file as far as it is known. A line that ends with a comment of TODO is a guess."""
    source: str
    """The kernel with what it reaches; empty if the job file holds the source."""
    host: dict[str, str]
    """Parts of files, by name, that name the kernel and may launch it."""
    compiler: str
    """What a compiler says of the kernel with the present guesses; empty if it compiles or none is there."""
    is_launched: bool
    """True if the reply is checked by launching the kernel."""
    earlier: FillReply | None = None
    """An earlier reply that was of no use. Left out if there is none."""
    problems: tuple[str, ...] = ()
    """What was wrong with it, each addressed to its author."""
