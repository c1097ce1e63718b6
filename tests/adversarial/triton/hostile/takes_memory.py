# refused: MemoryError
# Memory beyond the limit.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    block = bytearray(100 << 30)
    return len(block)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
