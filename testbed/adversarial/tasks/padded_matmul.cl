// C = A B in rows of `stride` elements, of which the first n are the product and nobody reads the others.
__kernel void padded_matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                            const int n, const int k, const int stride) {
  const int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * stride + column] = sum;
}
