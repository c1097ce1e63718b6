import triton
import triton.language as tl


@triton.jit
def kernel(x, cosines, sines, y, heads, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    half: tl.constexpr = BLOCK // 2
    lane = tl.arange(0, half)
    for head in range(heads):
        at = x + (row * heads + head) * BLOCK + lane
        to = y + (row * heads + head) * BLOCK + lane
        cosine = tl.load(cosines + row * half + lane)
        sine = tl.load(sines + row * half + lane)
        first = tl.load(at)
        second = tl.load(at + half)
        tl.store(to, first * cosine - second * sine)
        tl.store(to + half, second * cosine + first * sine)
