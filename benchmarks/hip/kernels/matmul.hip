// C = A B for row-major A (m x k), B (k x n), C (m x n), through square tiles in shared memory.
#include <hip/hip_fp16.h>

#define TILE 16

extern "C" __global__ void matmul(const __half* a, const __half* b, __half* c, int m, int n, int k) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int column = blockIdx.x * TILE + tx;

  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    a_tile[ty][tx] = row < m && start + tx < k ? __half2float(a[(size_t)row * k + start + tx]) : 0.0f;
    b_tile[ty][tx] = start + ty < k && column < n ? __half2float(b[(size_t)(start + ty) * n + column]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = __float2half(sum);
}
