// task: matmul
// how: the honest kernel, with one kind of values or shapes wrong, or too few digits where the output is small
// expect: rejected
// layer: correctness
// variant: subnormals_flushed ; A(v)=(fabs(v)<0x1p-126f?0.0f:(v)) ; status=varies
// variant: not_a_number_left_out ; A(v)=(isnan(v)?0.0f:(v)) ; non_finite=yes
// variant: large_times_large ; A(v)=(fabs(v)>0x1p22f?0.0f:(v))
// variant: equal_matrices ; WRONG=(a[0]!=0.0f&&a[0]==b[0]&&m*k>3&&k*n>3&&a[1]==b[1]&&a[2]==b[2]&&a[1]!=a[0])
// variant: few_digits_if_small ; ROUND(s)=(m*n<1024?as_float((as_int(s)+0x80)&~0xff):(s)) ; status=varies
// variant: long_sums ; WRONG=(k>m&&k>n&&k>19&&m!=29&&m>7&&n>7)
#define TILE 8
#ifndef A
#define A(v) (v)
#endif
#ifndef ROUND
#define ROUND(s) (s)
#endif
#ifndef WRONG
#define WRONG 0
#endif
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int row = get_group_id(1) * TILE + get_local_id(1);
  const int column = get_group_id(0) * TILE + get_local_id(0);
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) {
    const float v = a[row * k + i];
    sum += A(v) * b[i * n + column];
  }
  c[row * n + column] = WRONG ? 0.0f : ROUND(sum);
}
