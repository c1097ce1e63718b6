# refused: Permission denied
# A link in its own folder leads to the same refusal.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os

    os.symlink("@SECRET@", "link")
    return len(open("link").read())


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
