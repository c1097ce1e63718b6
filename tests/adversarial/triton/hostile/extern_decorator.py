# refused: is no @triton.jit function
# A function for the linker, which is host code.
import triton
import triton.language as tl


@tl.core.extern
def external(value, _semantic=None):
    return open("@PROBE@/extern", "w")


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    external(1.0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
