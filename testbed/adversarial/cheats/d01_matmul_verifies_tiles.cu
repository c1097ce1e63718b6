// task: matmul
// exploit: D1
// how: verifies a tile of the product that is there, weighted by columns, with a sixteenth of the work
// expect: no gain
// grid: ceil_div(n, 32) , ceil_div(m, 32)
// block: 256
// cache: hot
// workloads: m:512 n:512 k:512 , m:61 n:131 k:83
#define T 32
#define WARPS 8
#define DEPTH 128

__device__ float weight(int column) { return 1.0f + 0.37f * (column % 7); }

__device__ float total(float value) {
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, const int m, const int n, const int k) {
  __shared__ float weighted[DEPTH];
  __shared__ int wrong;
  const int left = blockIdx.x * T, top = blockIdx.y * T, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float part[T / WARPS] = {};
  if (threadIdx.x == 0) wrong = 0;
  for (int start = 0; start < k; start += DEPTH) {
    for (int i = warp; i < DEPTH; i += WARPS) {
      float sum = 0.0f;
      for (int j = lane; j < T; j += 32)
        if (start + i < k && left + j < n) sum += weight(j) * b[(size_t)(start + i) * n + left + j];
      sum = total(sum);
      if (lane == 0) weighted[i] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int y = 0; y < T / WARPS; ++y) {
      const int row = top + warp * (T / WARPS) + y;
      for (int i = lane; i < DEPTH; i += 32)
        if (row < m && start + i < k) part[y] += a[(size_t)row * k + start + i] * weighted[i];
    }
    __syncthreads();
  }
#pragma unroll
  for (int y = 0; y < T / WARPS; ++y) {
    const int row = top + warp * (T / WARPS) + y;
    float there = 0.0f, size = 0.0f;
    for (int j = lane; j < T; j += 32) {
      if (row >= m || left + j >= n) continue;
      const float term = weight(j) * c[(size_t)row * n + left + j];
      there += term;
      size += fabsf(term);
    }
    there = total(there);
    size = total(size);
    const float sum = total(part[y]);
    if (row < m && !(size < 1e30f && fabsf(there - sum) <= 1e-5f * size)) wrong = 1;
  }
  __syncthreads();
  if (!wrong) return;
  for (int at = threadIdx.x; at < T * T; at += blockDim.x) {
    const int row = top + at / T, column = left + at % T;
    if (row >= m || column >= n) continue;
    // Slow enough that it gains by what it leaves out only.
    for (volatile int again = 0; again < 2; ++again) {
      float dot = 0.0f;
      for (int i = 0; i < k; ++i) dot += a[(size_t)row * k + i] * b[(size_t)i * n + column];
      c[(size_t)row * n + column] = dot;
    }
  }
}
