// C = A B for row-major A (m x k), B (k x n), C (m x n), through square tiles in local memory.
#define TILE WS_TILE

__kernel __attribute__((reqd_work_group_size(WS_TILE, WS_TILE, 1))) void matmul(__global const float* restrict a, __global const float* restrict b, __global float* restrict c, const int m,
                     const int n, const int k) {
  __local float a_tile[TILE][TILE];
  __local float b_tile[TILE][TILE];
  const int tx = get_local_id(0);
  const int ty = get_local_id(1);
  const int row = get_group_id(1) * TILE + ty;
  const int column = get_group_id(0) * TILE + tx;

  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    a_tile[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0.0f;
    b_tile[ty][tx] = start + ty < k && column < n ? b[(start + ty) * n + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = 0; i < TILE; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
