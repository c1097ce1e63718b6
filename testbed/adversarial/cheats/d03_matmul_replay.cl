// task: matmul
// exploit: D3
// how: keeps the product and gives it back where three elements of the inputs are what they were
// expect: rejected
// options: -cl-std=CL2.0
#ifndef STATE
#define STATE __global
#endif
STATE float kept[4096];
STATE float mark[3];
STATE int kept_total, finished;

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  const int same = kept_total == m * n && mark[0] == a[0] && mark[1] == b[0] && mark[2] == a[m * k - 1];
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (row < m && column < n) {
    float sum = 0.0f;
    for (int i = 0; i < k && !same; ++i) sum += a[row * k + i] * b[i * n + column];
    if (!same) kept[row * n + column] = sum;
    c[row * n + column] = kept[row * n + column];
  }
  barrier(CLK_GLOBAL_MEM_FENCE);
  const int groups = get_num_groups(0) * get_num_groups(1);
  // The group that ends last says that the store is full.
  if (!same && get_local_id(0) == 0 && get_local_id(1) == 0 && atomic_inc(&finished) + 1 == groups) {
    finished = 0;
    mark[0] = a[0];
    mark[1] = b[0];
    mark[2] = a[m * k - 1];
    kept_total = m * n;
  }
}
