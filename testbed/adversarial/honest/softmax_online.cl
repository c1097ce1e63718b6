// task: softmax
// how: maximum and sum in one pass; local memory holds two meanings one after the other
// expect: accepted
// variant: all_items ; ITEMS=64
// variant: few_items ; ITEMS=3
#define BLOCK 64

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float tops[BLOCK];
  __local float sums[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  float top = -INFINITY, sum = 0.0f;
  for (int i = lid; i < columns && lid < ITEMS; i += ITEMS) {
    const float v = vload_half(i, x);
    if (v > top) {
      sum = top == -INFINITY ? 0.0f : sum * exp(top - v);
      top = v;
    }
    sum += exp(v - top);
  }
  tops[lid] = top;
  sums[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  float all_top = -INFINITY, all = 0.0f;
  for (int i = 0; i < BLOCK; ++i) all_top = fmax(all_top, tops[i]);
  for (int i = 0; i < BLOCK; ++i) all += tops[i] == -INFINITY ? 0.0f : sums[i] * exp(tops[i] - all_top);
  for (int i = lid; i < columns; i += BLOCK) vstore_half(exp(vload_half(i, x) - all_top) / all, i, y);
}
