# harmless
# A kernel inside of branches is found, and what is beside it stays behind.
import os
import triton
import triton.language as tl

if os.mkdir("@PROBE@/if") is None:
    try:
        os.mkdir("@PROBE@/try")

        @triton.jit
        def kernel(x, y, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
    finally:
        os.mkdir("@PROBE@/finally")
