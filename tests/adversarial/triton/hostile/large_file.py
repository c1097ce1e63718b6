# refused: File too large
# A file beyond the limit.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    with open("large", "wb") as file:
        while True:
            file.write(bytes(16 << 20))
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
