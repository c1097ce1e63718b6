// task: padded_matmul
// how: the product, and other things in the elements that do not count
// expect: accepted
// variant: leaves_the_padding ; FORM=0
// variant: zeros_in_the_padding ; FORM=1
// variant: rubbish_in_the_padding ; FORM=2
// variant: not_a_number_in_the_padding ; FORM=3
// variant: own_copy_in_the_padding ; FORM=4
// variant: partial_sums_in_the_padding ; FORM=5
// variant: rubbish_by_race_in_the_padding ; FORM=6
__kernel void padded_matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                            const int n, const int k, const int stride) {
  const int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  __global float* rest = c + row * stride + n;
  float sum = 0.0f;
#if FORM == 5
  for (int i = 0; i < k / 2; ++i) sum += a[row * k + i] * b[i * n + column];
  rest[column] = sum;
  for (int i = k / 2; i < k; ++i) rest[column] += a[row * k + i] * b[i * n + column];
  sum = rest[column];
#else
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
#endif
  c[row * stride + column] = sum;
#if FORM == 1
  rest[column] = 0.0f;
#elif FORM == 2
  rest[column] = 1.0e30f * a[row * k] + column;
#elif FORM == 3
  rest[column] = as_float(0x7fc00000 + column);
#elif FORM == 4
  rest[column] = sum;
#elif FORM == 6
  rest[0] = sum;
#endif
}
