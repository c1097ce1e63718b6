// out[t][i] = silu(x[t][i]) * x[t][hidden + i]: the gated activation of a transformer's feed-forward layer.
// One block handles one row.
#include <hip/hip_fp16.h>

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

extern "C" __global__ void silu_and_mul(const __half* input, __half* out, int hidden) {
  const size_t row = blockIdx.x;
  const __half* gate = input + row * 2 * hidden;
  const __half* up = gate + hidden;
  __half* dst = out + row * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = __half2float(gate[i]);
    const float u = __half2float(up[i]);
    dst[i] = __float2half(silu(g) * u);
  }
}
