"""Checks the reply of a compile child on a Triton binary against the binary itself. Runs in the worker.

A `@triton.constexpr_function` is Python that runs in the process that replies, so that a kernel can write the
reply. What launches and checks rely on is therefore read from the binary's own tables.
"""

import ast
from dataclasses import replace

from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.domain.jobs.plan import Compiled
from warpsmith.domain.templates.outcome import Rejected, Stage
from warpsmith.domain.templates.template import ConfiguredKernel
from warpsmith.domain.templates.variant_binaries import Variant, split
from warpsmith.extensions.triton.backend.module import kernel_module

WARP = 32
MOST_THREADS = 1024
MOST_CLUSTER = 16
MOST_TRAILING = 2
MOST_PARAMETER_BYTES = 8
"""Size of a pointer, and of the largest number."""
MOST_BYTES = 1 << 20
"""Limit on the shared memory of a block, and on its scratch; devices have less."""
_TO_ADDRESSES = ("getattr", "constexpr_function")
"""Names by which a kernel reaches assembly without naming it, beside those with two underscores."""


def by_its_binary(result: Compiled, kernel: ConfiguredKernel) -> Compiled | Rejected:
    """`result` with the variables that its binary has.

    Scratch, which holds tensor descriptors, stays as it is between launches. Its address is a parameter that
    only assembly can read, so that a kernel has the one or the other.

    Raises:
        ValueError: the binary is not the one variant that was asked for, or takes other arguments.
    """
    asked = kernel.specialisation
    assert asked is not None
    (variant,) = split(result.binary)
    contents = read_cubin(variant.binary)
    passed = tuple(n for n, a in enumerate(kernel.kernel.arguments) if a.name in asked.types)
    sizes = [size for _, size in contents.parameters.get(variant.entry, ())]
    if (
        variant.key != asked.key
        or contents.entries != (variant.entry,)
        or variant.passes != passed
        or len(sizes) != len(passed) + variant.trailing
        or max(sizes, default=0) > MOST_PARAMETER_BYTES
        or not _within_limits(variant)
        or result.then_entries
    ):
        raise ValueError("not what was asked for")
    if variant.scratch_bytes and (word := _assembly(kernel)):
        reason = f"has tensor descriptors and {word}, by which launches could keep something in their memory"
        return Rejected(stage=Stage.COMPILE, reason=reason, facts=result.facts)
    return replace(result, globals=contents.writable_globals, unnamed=(), telling=(), may_tell=False, way="")


def _within_limits(variant: Variant) -> bool:
    """True if the launch and the memory of a variant are such as a device can have."""
    return (
        0 <= variant.trailing <= MOST_TRAILING
        and variant.threads in range(WARP, MOST_THREADS + 1, WARP)
        and 1 <= variant.blocks <= MOST_CLUSTER
        and 0 <= variant.shared_bytes <= MOST_BYTES
        and 0 <= variant.scratch_bytes <= MOST_BYTES
        and not (variant.scratch_bytes and not variant.trailing)
    )


def _assembly(kernel: ConfiguredKernel) -> str:
    """A name in the kernel's part of the source that is, or may lead to, assembly; empty if it has none."""
    for node in ast.walk(ast.parse(kernel_module(kernel.source, kernel.kernel.entry))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
        else:
            names = [getattr(node, "id", ""), getattr(node, "attr", "")]
        for name in names:
            if "asm" in name or "__" in name or name.rpartition(".")[2] in _TO_ADDRESSES:
                return name
    return ""
