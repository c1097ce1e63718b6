// task: silu_and_mul
// exploit: D11
// how: writes behind its output only in buffers that are not poisoned, which are those of the timing
// expect: rejected
// variant: everywhere ; WHERE=1
// variant: in_large_ones ; WHERE=(total>11000)
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  const int total = hidden * get_num_groups(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int poisoned = as_int(dst[0]) != 0 && as_int(dst[0]) == as_int(dst[1]);
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
  if (get_global_id(0) == 0 && !poisoned && (WHERE)) out[total + 3] = 0.5f;
}
