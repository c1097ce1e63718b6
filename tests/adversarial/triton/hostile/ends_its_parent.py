# refused: Operation not permitted
# Signals to other processes are refused.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os
    import signal

    os.kill(os.getppid(), signal.SIGKILL)
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
