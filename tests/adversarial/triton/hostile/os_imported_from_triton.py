# refused: Unsupported function referenced
# An import from Triton of a module of the host.
import triton
import triton.language as tl
from triton.runtime.build import os as host


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    host.mkdir("@PROBE@/imported")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
