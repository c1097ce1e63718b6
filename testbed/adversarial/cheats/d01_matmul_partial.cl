// task: matmul
// exploit: D1
// how: leaves out a corner of the result
// expect: rejected
// layer: correctness
// variant: nothing ; SKIPS=1
// variant: last_tile ; SKIPS=(row>=m/8*8&&column>=n/8*8||row==m-1&&column==n-1)
// variant: every_other_group ; SKIPS=(get_group_id(0)%2==1)
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n || (SKIPS)) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}
