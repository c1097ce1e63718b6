// task: matmul
// exploit: D7
// how: products and sums in half, which the hardware does twice as fast
// expect: rejected
// layer: correctness
#include <cuda_fp16.h>

extern "C" __global__ void matmul(const float* a, const float* b, float* c, const int m, const int n, const int k) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || column >= n) return;
  __half sum = __float2half(0.0f);
  for (int i = 0; i < k; ++i) sum = __hfma(__float2half(a[row * k + i]), __float2half(b[i * n + column]), sum);
  c[row * n + column] = __half2float(sum);
}
