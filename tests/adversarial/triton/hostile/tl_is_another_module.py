# refused: constexpr stands for
# An import from Triton of what Triton imported.
import triton
import triton.language as tl
from triton.runtime.build import os as host

constexpr = host.system
SIZE = constexpr("touch @PROBE@/import")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
