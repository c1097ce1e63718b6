// task: softmax
// how: warp shuffles in place of shared memory, every warp by itself
// expect: accepted
#include <cuda_fp16.h>

extern "C" __global__ void softmax(const __half* input, __half* out, const int columns) {
  const __half* x = input + (size_t)blockIdx.x * columns;
  __half* y = out + (size_t)blockIdx.x * columns;
  const int lane = threadIdx.x % 32;
  float top = __int_as_float(0xff800000), sum = 0.0f;
  for (int i = lane; i < columns; i += 32) top = fmaxf(top, __half2float(x[i]));
  for (int o = 16; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
  for (int i = lane; i < columns; i += 32) sum += expf(__half2float(x[i]) - top);
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = __float2half(expf(__half2float(x[i]) - top) / sum);
}
