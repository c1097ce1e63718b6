// task: silu_and_mul
// how: other launches: several groups for a row, one group for several rows, elements backwards
// expect: accepted
// variant: four_groups_a_row ; grid=tokens , 4
// variant: backwards ; BACKWARDS=1
#ifndef BACKWARDS
#define BACKWARDS 0
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int stride = get_local_size(0) * get_num_groups(1);
  for (int j = get_group_id(1) * get_local_size(0) + get_local_id(0); j < hidden; j += stride) {
    const int i = BACKWARDS ? hidden - 1 - j : j;
    dst[i] = silu(gate[i]) * gate[hidden + i];
  }
}
