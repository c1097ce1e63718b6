"""Launch geometry of a kernel, and of each launch of a sequence."""

from typing import Annotated

from pydantic import Field, StringConstraints

from warpsmith.domain.base import Frozen, Identifier
from warpsmith.domain.expressions import Expression


class Launch(Frozen):
    """Launch geometry in CUDA terms. The OpenCL global size is grid times block."""

    grid: tuple[Expression, ...] = Field(min_length=1, max_length=3)
    """Blocks (work-groups) along x, y, z."""
    block: tuple[Expression, ...] = Field(min_length=1, max_length=3)
    """Threads (work-items) per block along x, y, z."""
    shared_bytes: Expression = Expression(0)
    """Bytes of dynamic shared memory. Not supported for OpenCL, where a `__local` argument has the role
    `local`."""
    cluster: tuple[Expression, ...] = Field(default=(), max_length=3)
    """Blocks of a cluster along x, y, z (CUDA, from compute capability 9.0); empty: what the source says, or
    none. The grid is a multiple of it along each axis."""
    cooperative: bool = False
    """True if all blocks must be on the device at once, so that they can wait for each other (CUDA)."""

    @property
    def attributes_text(self) -> str:
        """The attributes in words, such as `cluster (2, 1, 1), cooperative`; empty without any."""
        cluster = f"cluster ({', '.join(e.text for e in self.cluster)})" if self.cluster else ""
        return ", ".join(filter(None, (cluster, "cooperative" * self.cooperative)))

    @property
    def joins_blocks(self) -> bool:
        """True if blocks may wait for each other, or read each other's shared memory."""
        return self.cooperative or bool(self.cluster)


Entry = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]
"""A function's name, or a C++ name expression such as `ns::kernel<__half, 8>` (CUDA)."""


class SequencedLaunch(Frozen):
    """A launch of a sequence."""

    entry: Entry
    """Function name, or a C++ name expression (CUDA)."""
    arguments: tuple[Identifier, ...] = Field(min_length=1, max_length=64)
    """Names of the kernel's `arguments` that this launch takes, in the order of its function."""
    launch: Launch
