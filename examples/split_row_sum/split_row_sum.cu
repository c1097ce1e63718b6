// Sum of the squares of every row, in two launches: SPLITS blocks share a row, and their sums are merged.
#define BLOCK 256
#define SPLITS 2

extern "C" __global__ void partials(const float* x, float* partial, const int columns) {
  __shared__ float sums[BLOCK];
  const int lid = threadIdx.x;
  const int row = blockIdx.x, split = blockIdx.y;
  const int share = (columns + SPLITS - 1) / SPLITS;
  const int end = min(columns, (split + 1) * share);
  const float* from = x + row * (size_t)columns;

  float sum = 0.0f;
  for (int i = split * share + lid; i < end; i += BLOCK) sum += from[i] * from[i];
  sums[lid] = sum;
  __syncthreads();
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) sums[lid] += sums[lid + stride];
    __syncthreads();
  }
  if (lid == 0) partial[row * SPLITS + split] = sums[0];
}

extern "C" __global__ void merge(const float* partial, float* y, const int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int split = 0; split < SPLITS; ++split) sum += partial[row * SPLITS + split];
  y[row] = sum;
}
