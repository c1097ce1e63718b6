// task: matmul
// exploit: D1
// how: verifies the product that is there, weighted by columns, with a sixteenth of the work, and leaves it alone
// expect: no gain
// grid: ceil_div(n, 32) , ceil_div(m, 32)
// block: 64
// cache: hot
// backends: opencl
// workloads: m:64 n:64 k:64 , m:29 n:35 k:19
#define T 32

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int left = get_group_id(0) * T, top = get_group_id(1) * T, id = get_local_id(0);
  const int row = top + id % T, side = id / T;
  __local float weighted[64], part[64];
  __local int wrong;
  if (id == 0) wrong = 0;
  float sum = 0.0f;
  for (int start = 0; start < k; start += 64) {
    float w = 0.0f;
    if (start + id < k)
      for (int j = 0; j < T && left + j < n; ++j) w += (1.0f + 0.37f * (j % 7)) * b[(start + id) * n + left + j];
    weighted[id] = w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < m)
      for (int i = side * 32; i < side * 32 + 32 && start + i < k; ++i) sum += a[row * k + start + i] * weighted[i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  part[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < T && row < m) {
    float there = 0.0f, size = 0.0f;
    for (int j = 0; j < T && left + j < n; ++j) {
      const float term = (1.0f + 0.37f * (j % 7)) * c[row * n + left + j];
      there += term;
      size += fabs(term);
    }
    if (!(size < 1e30f && fabs(there - part[id] - part[id + T]) <= 1e-5f * size)) wrong = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!wrong) return;
  const int column = left + id % T;
  if (column >= n) return;
  for (int y = top + side * 16; y < top + side * 16 + 16 && y < m; ++y) {
    // Slow enough that it gains by what it leaves out only.
    for (volatile int again = 0; again < 16; ++again) {
      float dot = 0.0f;
      for (int i = 0; i < k; ++i) dot += a[y * k + i] * b[i * n + column];
      c[y * n + column] = dot;
    }
  }
}
