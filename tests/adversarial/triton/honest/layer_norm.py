import triton
import triton.language as tl


@triton.jit
def kernel(x, w, b, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * cols + columns, mask=columns < cols, other=0.0)
    mean = tl.sum(total, axis=0) / cols
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + columns, mask=columns < cols, other=0.0)
        centred = tl.where(columns < cols, value - mean, 0.0)
        total += centred * centred
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < cols
        value = tl.load(x + row * cols + columns, mask=inside, other=0.0)
        weight = tl.load(w + columns, mask=inside)
        bias = tl.load(b + columns, mask=inside)
        tl.store(y + row * cols + columns, (value - mean) * scale * weight + bias, mask=inside)
