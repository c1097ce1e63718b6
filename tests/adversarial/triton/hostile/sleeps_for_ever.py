# refused: did not finish within
# Uses no processor time, and blocks what could wake it.
# seconds: 3
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import signal
    import time

    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(1000)


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
