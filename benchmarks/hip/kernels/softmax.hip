// Softmax of every row. One block handles one row.
#include <hip/hip_bf16.h>

__device__ float block_reduce(float value, float* scratch, bool take_max) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor(value, offset);
    value = take_max ? fmaxf(value, other) : value + other;
  }
  const int warps = (blockDim.x + warpSize - 1) / warpSize;
  if (threadIdx.x % warpSize == 0) scratch[threadIdx.x / warpSize] = value;
  __syncthreads();
  value = scratch[0];
  for (int w = 1; w < warps; ++w) value = take_max ? fmaxf(value, scratch[w]) : value + scratch[w];
  __syncthreads();
  return value;
}

extern "C" __global__ void softmax(const __hip_bfloat16* input, __hip_bfloat16* out, int columns) {
  __shared__ float scratch[32];
  const __hip_bfloat16* x = input + (size_t)blockIdx.x * columns;
  __hip_bfloat16* y = out + (size_t)blockIdx.x * columns;

  float top = __bfloat162float(x[0]);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, __bfloat162float(x[i]));
  top = block_reduce(top, scratch, true);

  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(__bfloat162float(x[i]) - top);
  sum = block_reduce(sum, scratch, false);

  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[i] = __float2bfloat16(expf(__bfloat162float(x[i]) - top) / sum);
  }
}
