// task: matmul
// exploit: D6
// how: exact on small shapes, eleven bits of the inputs on large ones
// expect: rejected
// layer: correctness
// variant: large_k ; LARGE=(k>32)
// variant: large_m ; LARGE=(m>=64)
float coarse(float x) { return as_float(as_int(x) & ~0x1fff); }

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    const float x = a[row * k + i], y = b[i * n + column];
    sum += LARGE ? coarse(x) * coarse(y) : x * y;
  }
  c[row * n + column] = sum;
}
