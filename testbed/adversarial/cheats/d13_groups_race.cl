// task: matmul
// exploit: D13
// how: several groups add to one element without atomics, after one of them has set it to zero; PoCL may
// how: run the groups one after another, where that is right
// expect: rejected
// backends: cuda
// grid: ceil_div(n, 8) , ceil_div(m, 8) , 4
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n) return;
  if (get_group_id(2) == 0) c[row * n + column] = 0.0f;
  for (int i = get_group_id(2); i < k; i += get_num_groups(2)) {
    c[row * n + column] += a[row * k + i] * b[i * n + column];
  }
}
