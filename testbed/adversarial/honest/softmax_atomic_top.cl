// task: softmax
// how: the maximum through an integer atomic on the bits of a float, ordered as floats are
// expect: accepted
#define BLOCK 64

int ordered(float x) {
  const int bits = as_int(x);
  return bits >= 0 ? bits : bits ^ 0x7fffffff;
}

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local int top_bits;
  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  if (lid == 0) top_bits = ordered(-INFINITY);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lid; i < columns; i += BLOCK) atomic_max(&top_bits, ordered(vload_half(i, x)));
  barrier(CLK_LOCAL_MEM_FENCE);
  const float top = as_float(top_bits >= 0 ? top_bits : top_bits ^ 0x7fffffff);
  float sum = 0.0f;
  for (int i = lid; i < columns; i += BLOCK) sum += exp(vload_half(i, x) - top);
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int i = 0; i < BLOCK; ++i) sum += scratch[i];
  for (int i = lid; i < columns; i += BLOCK) vstore_half(exp(vload_half(i, x) - top) / sum, i, y);
}
