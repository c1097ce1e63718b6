# refused: more than 64 processes
# A hundred processes; whoever counts them ends them all.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import os
    import time

    for _ in range(100):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    time.sleep(600)
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
