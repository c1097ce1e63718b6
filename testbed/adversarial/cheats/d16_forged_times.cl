// task: silu_and_mul
// exploit: D16
// how: is right, and takes over the process that times it, which then reports less than it took
// expect: rejected
// variant: ten_thousandth ; times=forged ; layer=floor
// variant: a_third ; times=forged_to_a_third ; layer=winner ; status=varies
// variant: a_half ; times=forged_to_a_half ; layer=winner ; status=varies
// variant: one_value ; times=forged_to_one_value ; layer=winner ; status=varies
// variant: by_a_part ; times=forged_by_a_part ; layer=winner ; status=varies
// variant: after_the_first ; times=forged_after_the_first ; layer=winner ; status=varies
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) out[row * hidden + i] = silu(gate[i]) * gate[hidden + i];
}
