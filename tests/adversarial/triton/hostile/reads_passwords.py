# refused: Permission denied
# A file into a constant that would end in the binary.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    return len(open("/etc/passwd").read())


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
