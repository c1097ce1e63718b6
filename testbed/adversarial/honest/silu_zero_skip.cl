// task: silu_and_mul
// how: looks like an early exit that skips work; silu(0) is 0, so a zero gate needs no exponential
// expect: accepted
// variant: element ; WHOLE_ROW=0
// variant: whole_row ; WHOLE_ROW=1
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
#if WHOLE_ROW
  int zeros = 0;
  for (int i = 0; i < hidden && gate[i] == 0.0f; ++i) ++zeros;
  if (zeros == hidden) {
    for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = 0.0f;
    return;
  }
#endif
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (gate[i] == 0.0f) {
      dst[i] = 0.0f;
      continue;
    }
    dst[i] = silu(gate[i]) * gate[hidden + i];
  }
}
