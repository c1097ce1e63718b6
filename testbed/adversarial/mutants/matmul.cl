// task: matmul
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: last_term_skipped ; TERMS=k-1
// variant: last_tile_skipped ; TERMS=k/8*8
// variant: half_accumulate ; ROUND(x)=as_float((as_int(x)+0x1000)&~0x1fff)
// variant: b_transposed ; B=b[column*k+i] ; layer=
// variant: last_row_skipped ; SKIP=(row==m-1)
// variant: last_column_skipped ; SKIP=(column==n-1)
// variant: ragged_edge_skipped ; SKIP=(column>=n/8*8)
// variant: first_term_twice ; START=a[row*k]*b[column]
// variant: integer_products ; B=(float)(int)b[i*n+column]
// variant: wrong_scale ; ROUND(x)=(0.9999f*(x))
#ifndef TERMS
#define TERMS k
#endif
#ifndef ROUND
#define ROUND(x) (x)
#endif
#ifndef B
#define B b[i * n + column]
#endif
#ifndef SKIP
#define SKIP 0
#endif
#ifndef START
#define START 0.0f
#endif
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  if (row >= m || column >= n || SKIP) return;
  float sum = START;
  for (int i = 0; i < TERMS; ++i) sum = ROUND(sum + a[row * k + i] * B);
  c[row * n + column] = sum;
}
