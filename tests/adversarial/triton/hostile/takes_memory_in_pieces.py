# refused: MemoryError
# Memory beyond the limit, which is touched piece by piece.
# memory: 4 GiB
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    kept = []
    while True:
        kept.append(bytearray(256 << 20))


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
