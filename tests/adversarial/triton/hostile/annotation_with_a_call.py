# refused: is no constant, in its head
# Annotations are run when a function is defined.
import triton
import triton.language as tl


@triton.jit
def kernel(x: open("@PROBE@/annotation", "w"), y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
