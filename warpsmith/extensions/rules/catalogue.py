"""The rewrite rules, in the order in which they compose."""

from warpsmith.extensions.rules.analysis.draft import Declined, Draft, Rule
from warpsmith.extensions.rules.compiler_hints.fast_math import FastMath
from warpsmith.extensions.rules.compiler_hints.fixed_scalars import FixedScalars
from warpsmith.extensions.rules.compiler_hints.launch_bounds import LaunchBounds
from warpsmith.extensions.rules.compiler_hints.restrict import Restrict
from warpsmith.extensions.rules.compiler_hints.unroll import Unroll
from warpsmith.extensions.rules.elements.elements_per_thread import ElementsPerThread
from warpsmith.extensions.rules.elements.index_packs import IndexPacks
from warpsmith.extensions.rules.elements.register_sum import RegisterSum
from warpsmith.extensions.rules.rows.row_in_registers import RowInRegisters
from warpsmith.extensions.rules.rows.row_split import RowSplit
from warpsmith.extensions.rules.rows.rows_per_block import RowsPerBlock
from warpsmith.extensions.rules.rows.vector_width import VectorWidth
from warpsmith.extensions.rules.sizes.block_size import BlockSize
from warpsmith.extensions.rules.sizes.lift_constants import LiftConstants
from warpsmith.extensions.rules.sizes.tight_grid import TightGrid

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
