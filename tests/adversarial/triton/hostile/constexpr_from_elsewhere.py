# refused: constexpr stands for
# The same by an import of Triton's.
import triton
from triton.runtime.build import subprocess
from triton.runtime.cache import uuid as constexpr
import triton.language as tl

SIZE = constexpr("touch @PROBE@/import")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
