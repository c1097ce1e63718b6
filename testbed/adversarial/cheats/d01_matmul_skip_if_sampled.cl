// task: matmul
// exploit: D1
// how: a tile whose diagonal is there already is left alone; a tile that was spoiled is computed
// expect: no gain
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  const int left = get_group_id(0) * 8, top = get_group_id(1) * 8;
  __local int done;
  if (get_local_id(0) == 0 && get_local_id(1) == 0) {
    done = 1;
    for (int d = 0; d < 8 && done; d += 1) {
      const int y = top + d < m ? top + d : m - 1, x = left + d < n ? left + d : n - 1;
      float sum = 0.0f;
      for (int i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
      done = c[y * n + x] == sum;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (done || row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}
