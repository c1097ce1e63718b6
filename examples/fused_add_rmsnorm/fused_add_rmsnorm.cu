// In place: residual += input, then input = rmsnorm(residual) * weight. One block handles one row.
#include <cuda_fp16.h>

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void fused_add_rmsnorm(__half* input, __half* residual, const __half* weight, int hidden,
                                             float eps) {
  __shared__ float partial[32];
  __half* x = input + (size_t)blockIdx.x * hidden;
  __half* r = residual + (size_t)blockIdx.x * hidden;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float v = __half2float(x[i]) + __half2float(r[i]);
    r[i] = __float2half(v);
    sum += v * v;
  }

  sum = warp_sum(sum);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  const int warps = (blockDim.x + 31) / 32;
  sum = warp_sum(lane < warps ? partial[lane] : 0.0f);

  const float scale = rsqrtf(sum / hidden + eps);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    x[i] = __float2half(__half2float(r[i]) * scale * __half2float(weight[i]));
  }
}
