// task: silu_and_mul
// exploit: D4
// how: counts its launches of each shape in device memory, is honest for the first of them and does nothing afterwards
// expect: rejected
// options: -cl-std=CL2.0
// variant: one ; HONEST=1
// variant: two ; HONEST=2
// variant: ten ; HONEST=10
#ifndef STATE
#define STATE __global
#endif
STATE int launches[2];
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  // Counted in groups, so that every group of the first launches works.
  __local int turn;
  if (get_local_id(0) == 0) turn = atomic_inc(&launches[hidden % 2]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (turn >= HONEST * (int)get_num_groups(0)) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
