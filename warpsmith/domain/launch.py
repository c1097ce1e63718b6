"""How a kernel is launched."""

from pydantic import Field

from warpsmith.domain.base import Frozen
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
