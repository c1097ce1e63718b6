// task: softmax
// how: a row of equal values is answered without an exponential, which is right for every such row
// expect: accepted
#define BLOCK 64

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  const float first = vload_half(0, x);
  float top = first, low = first;
  for (int i = 1; i < columns; ++i) {
    top = fmax(top, vload_half(i, x));
    low = fmin(low, vload_half(i, x));
  }
  if (top == low) {
    for (int i = get_local_id(0); i < columns; i += BLOCK) vstore_half(1.0f / columns, i, y);
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < columns; ++i) sum += exp(vload_half(i, x) - top);
  for (int i = get_local_id(0); i < columns; i += BLOCK) vstore_half(exp(vload_half(i, x) - top) / sum, i, y);
}
