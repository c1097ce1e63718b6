"""Objects of the rewrite rules in the registry."""

from warpsmith.registry import Extension, Kind

ROOM = "warpsmith.extensions.rules"

EXTENSION = Extension(
    {
        Kind.OFFLINE_PROVIDER: {"rules": "agents.rules.provider:RulesProvider"},
        Kind.REWRITER: {
            "rules": f"{ROOM}.templater",
        },
        # Sizes first, because loops are recognised by them and grids follow them; the row split before the
        # packs, which keep its start and step; decorations of the source last.
        Kind.RULE: {
            "lift_constants": f"{ROOM}.sizes.lift_constants:LiftConstants",
            "block_size": f"{ROOM}.sizes.block_size:BlockSize",
            "register_sum": f"{ROOM}.elements.register_sum:RegisterSum",
            "row_in_registers": f"{ROOM}.rows.row_in_registers:RowInRegisters",
            "row_split": f"{ROOM}.rows.row_split:RowSplit",
            "rows_per_block": f"{ROOM}.rows.rows_per_block:RowsPerBlock",
            "vector_width": f"{ROOM}.rows.vector_width:VectorWidth",
            "index_packs": f"{ROOM}.elements.index_packs:IndexPacks",
            "elements_per_thread": f"{ROOM}.elements.elements_per_thread:ElementsPerThread",
            "unroll": f"{ROOM}.compiler_hints.unroll:Unroll",
            "launch_bounds": f"{ROOM}.compiler_hints.launch_bounds:LaunchBounds",
            "restrict": f"{ROOM}.compiler_hints.restrict:Restrict",
            "fast_math": f"{ROOM}.compiler_hints.fast_math:FastMath",
        },
        # No rule reads what this one makes.
        Kind.LAST_RULE: {
            "fixed_scalars": f"{ROOM}.compiler_hints.fixed_scalars:FixedScalars",
        },
    }
)
