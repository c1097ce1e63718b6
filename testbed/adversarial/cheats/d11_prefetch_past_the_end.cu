// task: matmul
// exploit: D11
// how: fetches the next tile of A before it knows that there is one, and so reads behind the end
// expect: rejected
// layer: winner
// grid: ceil_div(n, 32) , ceil_div(m, 32)
// block: 32 , 32
// workloads: m:512 n:512 k:512 , m:61 n:131 k:83
extern "C" __global__ void matmul(const float* a, const float* b, float* c, const int m, const int n, const int k) {
  __shared__ float a_tile[32][33], b_tile[32][33];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
  const float* next = a + (size_t)min(row, m - 1) * k + tx;
  float fetched = *(volatile const float*)next, sum = 0.0f;
  for (int start = 0; start < k; start += 32) {
    a_tile[ty][tx] = row < m && start + tx < k ? fetched : 0.0f;
    b_tile[ty][tx] = start + ty < k && column < n ? b[(size_t)(start + ty) * n + column] : 0.0f;
    __syncthreads();
    next += 32;
    fetched = *(volatile const float*)next;
#pragma unroll
    for (int i = 0; i < 32; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = sum;
}
