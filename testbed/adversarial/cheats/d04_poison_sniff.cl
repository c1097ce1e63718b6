// task: silu_and_mul
// exploit: D4
// how: works only where the output holds one repeated word, as a poisoned output does; else leaves it alone
// expect: rejected
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int first = as_int(dst[0]), second = as_int(dst[1]);
  const int middle = as_int(dst[hidden / 2]), last = as_int(dst[hidden - 1]);
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (first == 0 || first != second || first != middle || first != last) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
