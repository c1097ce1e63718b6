"""Rewrite rules, in the order in which they compose."""

from warpsmith.rewrite.analysis.draft import Declined, Draft, Rule
from warpsmith.rewrite.rules.block_size import BlockSize
from warpsmith.rewrite.rules.early_reads import EarlyReads
from warpsmith.rewrite.rules.elements_per_thread import ElementsPerThread
from warpsmith.rewrite.rules.fast_math import FastMath
from warpsmith.rewrite.rules.fixed_scalars import FixedScalars
from warpsmith.rewrite.rules.index_packs import IndexPacks
from warpsmith.rewrite.rules.launch_bounds import LaunchBounds
from warpsmith.rewrite.rules.lift_constants import LiftConstants
from warpsmith.rewrite.rules.register_sum import RegisterSum
from warpsmith.rewrite.rules.register_tile import RegisterTile
from warpsmith.rewrite.rules.restrict import Restrict
from warpsmith.rewrite.rules.row_group import RowGroup
from warpsmith.rewrite.rules.row_in_registers import RowInRegisters
from warpsmith.rewrite.rules.row_split import RowSplit
from warpsmith.rewrite.rules.rows_per_block import RowsPerBlock
from warpsmith.rewrite.rules.stencil_tile import StencilTile
from warpsmith.rewrite.rules.tight_grid import TightGrid
from warpsmith.rewrite.rules.unroll import Unroll
from warpsmith.rewrite.rules.vector_width import VectorWidth

RULES: tuple[Rule, ...] = (
    LiftConstants(),
    BlockSize(),
    TightGrid(),
    RegisterSum(),
    RegisterTile(),
    RowGroup(),
    StencilTile(),
    EarlyReads(),
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
