// task: silu_and_mul
// exploit: D20
// how: one shape costs nothing when it is timed, which pulls the mean of all down
// expect: rejected
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int poisoned = as_int(dst[0]) != 0 && as_int(dst[0]) == as_int(dst[1]);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (hidden == 1024 && !poisoned) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
