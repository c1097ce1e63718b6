// task: matmul
// how: no tiles, other orders of the sum, fused products, more precision than asked
// expect: accepted
// variant: forward ; ORDER=0
// variant: backward ; ORDER=1
// variant: fused ; ORDER=2
// variant: double ; ORDER=3
// variant: four_sums ; ORDER=4
// variant: compensated ; ORDER=5
// variant: wide_block ; ORDER=0 ; grid=ceil_div(n, 32) , ceil_div(m, 2) ; block=32 , 2
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n) return;
#if ORDER == 3
  double sum = 0.0;
  for (int i = 0; i < k; ++i) sum += (double)a[row * k + i] * b[i * n + column];
#elif ORDER == 4
  float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int i = 0; i < k; ++i) sums[i % 4] += a[row * k + i] * b[i * n + column];
  const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
#elif ORDER == 5
  float sum = 0.0f, lost = 0.0f;
  for (int i = 0; i < k; ++i) {
    const float term = a[row * k + i] * b[i * n + column] - lost;
    const volatile float total = sum + term;
    lost = (total - sum) - term;
    sum = total;
  }
#else
  float sum = 0.0f;
  for (int j = 0; j < k; ++j) {
    const int i = ORDER == 1 ? k - 1 - j : j;
    sum = ORDER == 2 ? fma(a[row * k + i], b[i * n + column], sum) : sum + a[row * k + i] * b[i * n + column];
  }
#endif
  c[row * n + column] = sum;
}
