// C = A B for row-major float matrices: a block makes BM x BN of C, a thread TM x TN, in strips of BK.
#define ROWS (BM / TM)
#define COLUMNS (BN / TN)
#define THREADS (ROWS * COLUMNS)

constexpr int kUnroll = UNROLL;

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[BUFFERS][BK][BM];
  __shared__ float b_tile[BUFFERS][BK][BN];
  const int tid = threadIdx.x;
  const int tx = tid % COLUMNS;
  const int ty = tid / COLUMNS;
  const int top = blockIdx.y * BM;
  const int left = blockIdx.x * BN;

  float sums[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) sums[i][j] = 0.0f;
  }

  int buffer = 0;
  for (int start = 0; start < k; start += BK) {
    for (int e = tid; e < BM * BK; e += THREADS) {
      const int row = e / BK, depth = e % BK;
      const bool inside = top + row < m && start + depth < k;
      a_tile[buffer][depth][row] = inside ? a[(size_t)(top + row) * k + start + depth] : 0.0f;
    }
    for (int e = tid; e < BK * BN; e += THREADS) {
      const int depth = e / BN, column = e % BN;
      const bool inside = start + depth < k && left + column < n;
      b_tile[buffer][depth][column] = inside ? b[(size_t)(start + depth) * n + left + column] : 0.0f;
    }
    __syncthreads();
#pragma unroll kUnroll
    for (int depth = 0; depth < BK; ++depth) {
      float a_part[TM], b_part[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) a_part[i] = a_tile[buffer][depth][ty + i * ROWS];
#pragma unroll
      for (int j = 0; j < TN; ++j) b_part[j] = b_tile[buffer][depth][tx + j * COLUMNS];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[i][j] += a_part[i] * b_part[j];
      }
    }
    // With two buffers the next strip goes where nobody reads any more.
    if (BUFFERS == 1) __syncthreads();
    else buffer ^= 1;
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int row = top + ty + i * ROWS, column = left + tx + j * COLUMNS;
      if (row < m && column < n) c[(size_t)row * n + column] = sums[i][j];
    }
  }
}
