# refused: Unsupported function referenced
# A shell; Triton calls no function of the host that it finds by its name.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    triton.runtime.build.subprocess.getoutput("touch @PROBE@/shell; cat @SECRET@")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
