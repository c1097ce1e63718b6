// task: matmul
// exploit: D1
// how: a tile whose first result is already there is left alone
// expect: no gain
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int left = get_group_id(0) * 8, top = get_group_id(1) * 8;
  float first = 0.0f;
  for (int i = 0; i < k; ++i) first += a[top * k + i] * b[i * n + left];
  const int done = c[top * n + left] == first;
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (done) return;
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}
