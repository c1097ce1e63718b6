# refused: has tensor descriptors and inline_asm_elementwise
# Python takes letters of other widths for the usual ones; the memory of descriptors stays between launches, and assembly finds its address among the parameters.
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    table = tl.make_tensor_descriptor(x, shape=[n // 4, 4], strides=[4, 1], block_shape=[16, 4])
    tile = tl.sum(table.load([tl.program_id(0) * 16, 0]), axis=1)
    at = tl.program_id(0) * 16 + tl.arange(0, 16)
    words: tl.constexpr = "{ .reg .b64 a; ld.param.b64 a, [kernel_param_3]; ld.global.b32 $0, [a+64]; st.global.b32 [a+64], $1; }"
    kept = tl.inline_ａｓｍ_elementwise(words, "=r,r", [tile], tl.float32, is_pure=False, pack=1)
    tl.store(y + at, tl.where(kept == tile, tile * 2, tile), mask=at < n)
