// Sum of the squares of every row, in two launches: SPLITS groups share a row, and their sums are merged.
#define BLOCK 64
#define SPLITS 2

__kernel void partials(__global const float* x, __global float* partial, const int columns) {
  __local float sums[BLOCK];
  const int lid = get_local_id(0);
  const int row = get_group_id(0), split = get_group_id(1);
  const int share = (columns + SPLITS - 1) / SPLITS;
  const int end = min(columns, (split + 1) * share);
  __global const float* from = x + row * (size_t)columns;

  float sum = 0.0f;
  for (int i = split * share + lid; i < end; i += BLOCK) sum += from[i] * from[i];
  sums[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) sums[lid] += sums[lid + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) partial[row * SPLITS + split] = sums[0];
}

__kernel void merge(__global const float* partial, __global float* y, const int rows) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0.0f;
  for (int split = 0; split < SPLITS; ++split) sum += partial[row * SPLITS + split];
  y[row] = sum;
}
