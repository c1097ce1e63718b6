import triton
import triton.language as tl


@triton.jit
def kernel(x, y, rows, cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    down = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    across = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (down[:, None] < rows) & (across[None, :] < cols)
    tile = tl.load(x + down[:, None] * cols + across[None, :], mask=inside)
    tl.store(y + across[None, :] * rows + down[:, None], tile, mask=inside)
