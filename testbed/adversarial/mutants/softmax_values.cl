// task: softmax
// how: the maximum begins at a number, or one kind of values or shapes is wrong
// expect: rejected
// layer: correctness
// variant: maximum_from_zero ; FIRST=0.0f
// variant: not_a_number_left_out ; IN(v)=(isnan(v)?-INFINITY:(v)) ; non_finite=yes
// variant: falling_row ; WRONG=(columns>8&&x0>x1&&x1>x2&&x2>x3&&x3>x4&&x4>x5&&x5>x6&&x6>x7)
// variant: columns_between ; WRONG=(columns>300&&columns<900) ; status=varies
#define BLOCK 64
#ifndef FIRST
#define FIRST -INFINITY
#endif
#ifndef IN
#define IN(v) (v)
#endif
#ifndef WRONG
#define WRONG 0
#endif
#define X(i) IN(vload_half(i, x))

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  float x0 = 0.0f, x1 = 0.0f, x2 = 0.0f, x3 = 0.0f, x4 = 0.0f, x5 = 0.0f, x6 = 0.0f, x7 = 0.0f;
  if (columns > 8) {
    x0 = X(0), x1 = X(1), x2 = X(2), x3 = X(3), x4 = X(4), x5 = X(5), x6 = X(6), x7 = X(7);
  }
  float top = FIRST;
  for (int i = lid; i < columns; i += BLOCK) top = fmax(top, X(i));
  scratch[lid] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < BLOCK; ++i) top = fmax(top, scratch[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = lid; i < columns; i += BLOCK) sum += exp(X(i) - top);
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int i = 0; i < BLOCK; ++i) sum += scratch[i];
  for (int i = lid; i < columns; i += BLOCK) vstore_half(WRONG ? 1.0f / columns : exp(X(i) - top) / sum, i, y);
}
