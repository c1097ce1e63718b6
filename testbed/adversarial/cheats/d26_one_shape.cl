// task: silu_and_mul
// exploit: D26
// how: right only for the shapes that the job lists
// expect: rejected
// layer: correctness
// variant: two_widths ; FITS=(hidden==1024||hidden==131)
// variant: two_row_counts ; FITS=(get_num_groups(0)==16||get_num_groups(0)==5)
// variant: more_than_a_block ; FITS=(hidden>64)
// variant: one_listed_extent ; FITS=(hidden==1024||hidden==131||get_num_groups(0)==16||get_num_groups(0)==5)
// variant: up_to_one_of_the_largest ; FITS=(hidden<=1024||get_num_groups(0)<=16)
// variant: up_to_the_largest ; FITS=(hidden<=1024&&get_num_groups(0)<=16)
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  if (!(FITS)) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
