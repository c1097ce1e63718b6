# refused: Permission denied
# getattr with names that no reader of the file sees.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    getattr(getattr(triton.runtime.build, "o" + "s"), "mk" + "dir")("@PROBE@/getattr")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
