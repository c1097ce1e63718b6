"""Several variants of one kernel, each a cubin: the launch says which runs. Runs in device children."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from warpsmith.backends.base import Array, Bound, LaunchRefused
from warpsmith.backends.binaries.cubin import read_cubin
from warpsmith.backends.cuda.program import CudaFunction, CudaProgram
from warpsmith.domain.jobs.launch_size import LaunchSize
from warpsmith.domain.templates.variant_binaries import Variant


class CudaVariants:
    """The loaded variants of a Triton kernel."""

    def __init__(self, driver: Any, variants: Sequence[Variant]) -> None:
        self._driver = driver
        self._variants = {v.key: v for v in variants}
        self._programs = {v.key: _program(driver, v) for v in variants}
        self._scratch: Any = None
        self._scratch_bytes = 0

    def launch_of(
        self, number: int, arguments: Sequence[Bound], size: LaunchSize
    ) -> tuple[CudaFunction, Sequence[Bound], LaunchSize]:
        """The function of the launch's variant, with what it takes.

        Raises:
            LaunchRefused: no such variant was compiled.
        """
        variant = self._variants.get(size.variant)
        if variant is None:
            raise LaunchRefused("the kernel did not compile for the values of this launch")
        grid = (size.grid[0] * variant.blocks, *size.grid[1:])
        trailing = [np.uint64(0)] * variant.trailing
        if variant.scratch_bytes:
            trailing[0] = np.uint64(self._scratch_of(variant.scratch_bytes * prod(grid)))
        taken: list[Bound] = [arguments[place] for place in variant.passes]
        fitted = replace(
            size,
            grid=grid,
            block=(variant.threads, 1, 1),
            shared_bytes=variant.shared_bytes,
            cluster=(variant.blocks, 1, 1),
        )
        return self._programs[variant.key].functions[0], [*taken, *trailing], fitted

    def changed_globals(self) -> list[str]:
        """See `Program.changed_globals`."""
        return sorted({name for program in self._programs.values() for name in program.changed_globals()})

    def write_symbol(self, name: str, data: Array) -> None:
        """See `Program.write_symbol`."""
        raise LaunchRefused(f"symbol {name}: a Triton kernel has no variables that host code fills")

    def read_symbol(self, name: str) -> bytes:
        """See `Program.read_symbol`."""
        raise LaunchRefused(f"symbol {name}: a Triton kernel has no variables that host code fills")

    def unload(self) -> None:
        """See `Program.unload`."""
        for program in self._programs.values():
            program.unload()
        self._programs = {}
        if self._scratch is not None:
            self._scratch.free()
            self._scratch = None

    def _scratch_of(self, size_bytes: int) -> int:
        """Address of scratch memory of that size; it moves only before a launch that needs more."""
        if size_bytes > self._scratch_bytes:
            try:
                self._scratch = self._driver.mem_alloc(size_bytes)
            except self._driver.Error as exc:
                raise LaunchRefused(f"{size_bytes} bytes of scratch cannot be allocated: {exc}") from exc
            self._scratch_bytes = size_bytes
        return int(self._scratch)


def _program(driver: Any, variant: Variant) -> CudaProgram:
    module = driver.module_from_buffer(variant.binary)
    variables = read_cubin(variant.binary).writable_globals
    functions = [CudaFunction(module.get_function(variant.entry))]
    return CudaProgram(driver, module, functions, variables, variant.binary)
