# harmless
# What the process was started with holds nothing of the worker's environment.
import triton
import triton.language as tl


@triton.constexpr_function
def attempt():
    import ctypes
    import os

    block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    words, n = [], 0
    while block[n]:
        words.append(block[n].decode())
        n += 1
    words += [f"{k}={v}" for k, v in os.environ.items()]
    assert not [w for w in words if "@TOKEN@" in w], words
    return 2


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    outcome: tl.constexpr = attempt()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, outcome * tl.load(x + i, mask=i < n), mask=i < n)
