// task: matmul
// exploit: D7
// how: fewer bits everywhere; the last one stays inside the tolerance and is several times worse than the baseline
// expect: rejected
// layer: correctness
// variant: bfloat16_inputs ; BITS=0xffff ; ROUND=0
// variant: tf32_inputs ; BITS=0x1fff ; ROUND=0
// variant: half_sums ; BITS=0 ; ROUND=0x1fff
// variant: inside_the_tolerance ; BITS=0x1f ; ROUND=0
float cut(float x, int bits) { return as_float(as_int(x) & ~bits); }

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum = cut(sum + cut(a[row * k + i], BITS) * cut(b[i * n + column], BITS), ROUND);
  c[row * n + column] = sum;
}
