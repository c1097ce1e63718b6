// task: silu_and_mul
// exploit: D4
// how: works or not by a clock that the harness does not hold
// expect: rejected
// backends: opencl
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  if ((__builtin_readcyclecounter() >> 20) & 1) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
