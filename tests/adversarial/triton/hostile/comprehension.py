# refused: Unsupported function referenced
# A comprehension over what a call of the host gives.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    names: tl.constexpr = [triton.runtime.build.os.mkdir(p) for p in ("@PROBE@/a", "@PROBE@/b")]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
