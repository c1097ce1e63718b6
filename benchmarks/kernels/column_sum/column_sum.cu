// y[c] = sum of x[r][c] over the rows: BLOCK_X threads a row of VEC columns each, BLOCK_Y rows at once.
#if VEC == 4
typedef float4 Pack;
#elif VEC == 2
typedef float2 Pack;
#else
typedef float Pack;
#endif

constexpr int kUnroll = UNROLL;

__device__ inline Pack load(const float* from) {
#if STREAM
  return __ldcs(reinterpret_cast<const Pack*>(from));
#else
  return *reinterpret_cast<const Pack*>(from);
#endif
}

extern "C" __global__ void column_sum(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float parts[BLOCK_Y][BLOCK_X * VEC];
  const int first = (blockIdx.x * BLOCK_X + threadIdx.x) * VEC;
  float sums[VEC];
#pragma unroll
  for (int v = 0; v < VEC; ++v) sums[v] = 0.0f;

  if (first < columns) {
#pragma unroll kUnroll
    for (int row = threadIdx.y; row < rows; row += BLOCK_Y) {
      const Pack pack = load(x + (size_t)row * columns + first);
#pragma unroll
      for (int v = 0; v < VEC; ++v) sums[v] += reinterpret_cast<const float*>(&pack)[v];
    }
  }
#pragma unroll
  for (int v = 0; v < VEC; ++v) parts[threadIdx.y][threadIdx.x * VEC + v] = sums[v];
  __syncthreads();

#if TREE
  for (int left = BLOCK_Y; left > 1;) {
    const int half = (left + 1) / 2;
    if (threadIdx.y + half < left) {
#pragma unroll
      for (int v = 0; v < VEC; ++v) {
        parts[threadIdx.y][threadIdx.x * VEC + v] += parts[threadIdx.y + half][threadIdx.x * VEC + v];
      }
    }
    left = half;
    __syncthreads();
  }
#else
  if (threadIdx.y == 0) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) {
      float sum = 0.0f;
      for (int i = 0; i < BLOCK_Y; ++i) sum += parts[i][threadIdx.x * VEC + v];
      parts[0][threadIdx.x * VEC + v] = sum;
    }
  }
#endif
  if (threadIdx.y == 0 && first < columns) {
#pragma unroll
    for (int v = 0; v < VEC; ++v) y[first + v] = parts[0][threadIdx.x * VEC + v];
  }
}
