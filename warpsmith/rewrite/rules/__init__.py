"""Rewrite rules, in the order in which they compose."""

from warpsmith.rewrite.analysis.draft import Declined, Draft, Rule
from warpsmith.rewrite.rules.compiler_hints.fast_math import FastMath
from warpsmith.rewrite.rules.compiler_hints.fixed_scalars import FixedScalars
from warpsmith.rewrite.rules.compiler_hints.launch_bounds import LaunchBounds
from warpsmith.rewrite.rules.compiler_hints.restrict import Restrict
from warpsmith.rewrite.rules.compiler_hints.unroll import Unroll
from warpsmith.rewrite.rules.elements.elements_per_thread import ElementsPerThread
from warpsmith.rewrite.rules.elements.index_packs import IndexPacks
from warpsmith.rewrite.rules.elements.register_sum import RegisterSum
from warpsmith.rewrite.rules.rows.row_in_registers import RowInRegisters
from warpsmith.rewrite.rules.rows.row_split import RowSplit
from warpsmith.rewrite.rules.rows.rows_per_block import RowsPerBlock
from warpsmith.rewrite.rules.rows.vector_width import VectorWidth
from warpsmith.rewrite.rules.sizes.block_size import BlockSize
from warpsmith.rewrite.rules.sizes.lift_constants import LiftConstants
from warpsmith.rewrite.rules.sizes.tight_grid import TightGrid

RULES: tuple[Rule, ...] = (
    LiftConstants(),
    BlockSize(),
    TightGrid(),
    RegisterSum(),
    RowInRegisters(),
    RowSplit(),
    RowsPerBlock(),
    VectorWidth(),
    IndexPacks(),
    ElementsPerThread(),
    Unroll(),
    LaunchBounds(),
    Restrict(),
    FastMath(),
)
"""The rules in order: sizes first, because loops are recognised by them and grids follow them; the row split
before the packs, which keep its start and step; decorations of the source last."""

LAST_RULES: tuple[Rule, ...] = (FixedScalars(),)
"""Rules that are applied after all bodies of the kernel stand in its source; no rule reads what they make."""

ALL_RULES: tuple[Rule, ...] = (*RULES, *LAST_RULES)
"""In the order in which they are applied."""

__all__ = ["ALL_RULES", "LAST_RULES", "RULES", "Declined", "Draft", "Rule"]
