// task: silu_and_mul
// exploit: D16
// how: is slow in its first launches, so that an adaptive protocol takes few samples
// expect: no gain
// options: -cl-std=CL2.0
#ifndef STATE
#define STATE __global
#endif
STATE int launches;
STATE float sink;
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  if (get_local_id(0) == 0 && row == 0 && atomic_inc(&launches) < 3) {
    float wait = 0.0f;
    for (int i = 0; i < 300000; ++i) wait += exp(wait - i);
    sink = wait;
  }
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
