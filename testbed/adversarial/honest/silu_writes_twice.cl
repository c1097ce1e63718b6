// task: silu_and_mul
// how: writes every output twice, the first time with something else, as if to hide what it does
// expect: accepted
// variant: zero_first ; FIRST=0.0f
// variant: garbage_first ; FIRST=-7777.0f*i
// variant: input_first ; FIRST=gate[i]
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  volatile __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = FIRST;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
