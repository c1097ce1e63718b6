"""How the recorded kernels are launched, as their definitions in the collection say."""

from warpsmith.domain.expressions import Expression
from warpsmith.domain.kernel import Launch

WARP = 32


def _launch(block: tuple[str, ...], grid: tuple[str, ...]) -> Launch:
    return Launch(block=tuple(map(Expression, block)), grid=tuple(map(Expression, grid)))


def _tiled(width: int, height: int) -> Launch:
    return _launch(
        ("block_size_x", "block_size_y"),
        (
            f"ceil_div({width}, block_size_x * tile_size_x)",
            f"ceil_div({height}, block_size_y * tile_size_y)",
        ),
    )


LAUNCHES = {
    "convolution": _tiled(4096, 4096),
    "convolution_milo": _tiled(4096, 4096),
    "dedispersion_milo": _tiled(25000, 2048),
    "gemm": _launch(("MDIMC", "NDIMC"), ("4096 // MWG", "4096 // NWG")),
    "pnpoly": _launch(("block_size_x",), ("ceil_div(20000000, block_size_x * tile_size)",)),
    "ktt_convolution": _launch(
        ("BLOCK_SIZE_X", "BLOCK_SIZE_Y"),
        (
            "ceil_div(4096, BLOCK_SIZE_X * TILE_SIZE_X)",
            "ceil_div(4096, BLOCK_SIZE_Y * TILE_SIZE_Y)",
        ),
    ),
    "ktt_pnpoly": _launch(("BLOCK_SIZE_X",), ("ceil_div(20000000, BLOCK_SIZE_X * TILE_SIZE)",)),
}
"""By kernel; the searcher knows nothing of the launch of any other."""
