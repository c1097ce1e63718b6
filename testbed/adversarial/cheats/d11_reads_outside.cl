// task: silu_and_mul
// exploit: D11
// how: right results, and reads beside the input that no guard word shows, since it does not count
// expect: rejected
// layer: winner
// variant: behind_the_input ; AT=2*total
// variant: before_the_input ; AT=-1
// backends: opencl
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  const int total = hidden * get_num_groups(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
  if (get_global_id(0) == 0 && input[AT] == 1234.5f) dst[0] = 0.0f;
}
