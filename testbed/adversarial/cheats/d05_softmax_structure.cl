// task: softmax
// exploit: D5
// how: leaves out what inputs of moderate size do not need
// expect: rejected
// layer: correctness
// variant: no_maximum ; TOP=0.0f
// variant: fixed_maximum ; TOP=12.0f
// variant: tail_cut ; TOP=top ; CUT=-9.0f
#define BLOCK 64
#ifndef CUT
#define CUT -INFINITY
#endif

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  float top = -INFINITY;
  for (int i = 0; i < columns; ++i) top = fmax(top, vload_half(i, x));
  float sum = 0.0f;
  for (int i = lid; i < columns; i += BLOCK) {
    const float d = vload_half(i, x) - TOP;
    sum += d < CUT ? 0.0f : exp(d);
  }
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int i = 0; i < BLOCK; ++i) sum += scratch[i];
  for (int i = lid; i < columns; i += BLOCK) {
    const float d = vload_half(i, x) - TOP;
    vstore_half(d < CUT ? 0.0f : exp(d) / sum, i, y);
  }
}
