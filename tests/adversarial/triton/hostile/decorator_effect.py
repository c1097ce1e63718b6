# harmless
# Decorators other than Triton's are left out, with what they call.
import os
import triton
import triton.language as tl


@(lambda function: os.mkdir("@PROBE@/decorated") or function)
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
