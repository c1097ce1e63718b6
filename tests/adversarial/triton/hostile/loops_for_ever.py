# refused: did not finish within
# Ends at the deadline.
# seconds: 3
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    while True:
        pass


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
