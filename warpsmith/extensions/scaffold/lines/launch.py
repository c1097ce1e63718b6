"""The lines of a scaffold for the launch."""

import re
from collections.abc import Iterator, Mapping, Sequence

from warpsmith.extensions.scaffold.indices.index_space import BLOCK, GRID, IndexSpace
from warpsmith.extensions.scaffold.known import KnownJob
from warpsmith.extensions.scaffold.yaml_text import TODO, yaml_extent
from warpsmith.source.declarations.named_constants import integer_value
from warpsmith.source.kernels.kernel_definitions import Dialect, KernelDefinition

_DEFAULT_BLOCK = {Dialect.CUDA: 256, Dialect.HIP: 256, Dialect.OPENCL: 64}
_MOST_THREADS = 1024


def fixed_block(kernel: KernelDefinition, dialect: Dialect, numbers: Mapping[str, int]) -> tuple[int, ...]:
    """Extents of the block that `reqd_work_group_size` gives; nothing if there are none."""
    if dialect is not Dialect.OPENCL or kernel.launch_bounds.count(",") != 2:
        return ()
    found = [integer_value(part.strip(), numbers) for part in kernel.launch_bounds.split(",")]
    extents = tuple(n for n in found if n is not None and n >= 1)
    return extents if len(extents) == 3 else ()


def most_threads(kernel: KernelDefinition, numbers: Mapping[str, int]) -> int:
    """Threads that `__launch_bounds__` allows in a block; 0 if it says nothing."""
    found = integer_value(kernel.launch_bounds.split(",", 1)[0], numbers)
    return found if found is not None and 1 <= found <= _MOST_THREADS else 0


def usual_block(kernel: KernelDefinition, dialect: Dialect, numbers: Mapping[str, int]) -> tuple[str, ...]:
    """The block of a kernel of which nothing else is known."""
    fixed = fixed_block(kernel, dialect, numbers)
    threads = 0 if dialect is Dialect.OPENCL else most_threads(kernel, numbers)
    return tuple(map(str, fixed or (threads or _DEFAULT_BLOCK[dialect],)))


def launch_lines(
    kernel: KernelDefinition, dialect: Dialect, space: IndexSpace, named: Sequence[str], known: KnownJob
) -> Iterator[str]:
    """Grid, block and dynamic shared memory, each marked unless it is known or derived.

    Args:
        named: the grid of `space` over the job's own dimensions.
    """
    said = f" (the source says {kernel.launch_bounds})" if kernel.launch_bounds else ""
    guessed = (
        ("grid", GRID, named, known.grid, f"{TODO}: blocks along x, y, z"),
        ("block", BLOCK, space.block, known.block, f"{TODO}: threads along x, y, z{said}"),
    )
    for field, key, guess, told, mark in guessed:
        words, extents = space.reasons.get(key, ""), told or guess
        comment = words if key in space.sure else "; ".join(w for w in (mark, words) if w)
        comment = f"as {known.origin} says" if told else comment
        yield f"    {field}: [{', '.join(map(yaml_extent, extents))}]" + (f"  # {comment}" if comment else "")
    if shared := known.shared_bytes or (space.shared_bytes if not known.block else ""):
        yield f"    shared_bytes: {yaml_extent(shared)}"
    elif dialect is not Dialect.OPENCL and re.search(r"\bextern\s+__shared__", kernel.body):
        yield f"    shared_bytes: 0  # {TODO}: the kernel uses dynamic shared memory"
