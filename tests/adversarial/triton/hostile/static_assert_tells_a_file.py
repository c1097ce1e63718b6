# refused: Unsupported function referenced
# A message that would carry a file to the log.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    tl.static_assert(False, triton.runtime.build.subprocess.check_output("cat @SECRET@ 2>&1 || true", shell=True).decode())
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)
