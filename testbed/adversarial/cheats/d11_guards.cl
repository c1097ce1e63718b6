// task: silu_and_mul
// exploit: D11
// how: right results, and writes beside the buffers, where other buffers of the process may be
// expect: rejected
// layer: guard
// variant: behind_the_output ; AT=out[total+3]
// variant: before_the_output ; AT=out[-1]
// variant: far_end_of_the_guard ; AT=out[total+1023]
// variant: behind_the_input ; AT=((__global float*)input)[2*total]
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  const int total = hidden * get_num_groups(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
  if (get_global_id(0) == 0) AT = 0.5f;
}
