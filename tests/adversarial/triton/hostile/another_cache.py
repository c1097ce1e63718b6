# refused: Permission denied
# The folder of the cache is moved, and written.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    os.environ["TRITON_CACHE_DIR"] = "@PROBE@"
    os.environ["TRITON_DUMP_DIR"] = "@PROBE@"
    os.environ["TRITON_KERNEL_DUMP"] = "1"
    triton.runtime.cache.FileCacheManager("0" * 64).put("here", "here.txt", binary=False)
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
