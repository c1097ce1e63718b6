// task: padded_matmul
// exploit: D1
// how: leaves elements that count as if they were padding
// expect: rejected
// layer: correctness
// variant: last_column ; SKIP=column==n-1
// variant: last_row ; SKIP=row==m-1
// variant: columns_behind_the_last_eight ; SKIP=column>=n/8*8
// variant: one_in_a_thousand ; SKIP=(row*n+column)%1000==999
// variant: written_into_the_padding ; SKIP=column==n-1 ; AT=column+1
// variant: where_a_mark_was_left ; SKIP=as_int(c[row*stride+n])==0x5eed ; MARK=1 ; layer=
#ifndef AT
#define AT (-1)
#endif
__kernel void padded_matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                            const int n, const int k, const int stride) {
  const int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  const int skip = SKIP;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  if (!skip) c[row * stride + column] = sum;
  if (skip && AT >= 0) c[row * stride + AT] = sum;
#ifdef MARK
  if (column == n - 1) c[row * stride + n] = as_float(0x5eed);
#endif
}
