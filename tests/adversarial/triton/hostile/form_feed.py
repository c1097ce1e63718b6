# harmless
# Characters that end a line for some readers: lines of the file would take the place of others.
import os
import triton
import triton.language as tl

SIZE = tl.constexpr(2)  # a 
os.mkdir("@PROBE@/feed")

SIZE = tl.constexpr(2)  # a 
os.mkdir("@PROBE@/feed")

SIZE = tl.constexpr(2)  # a 
os.mkdir("@PROBE@/feed")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, SIZE * tl.load(x + i, mask=i < n), mask=i < n)
