// task: silu_and_mul
// exploit: D2
// how: copies what lies behind or before the output, where an earlier answer may be
// expect: rejected
// layer: correctness
// variant: behind ; FROM=total+i
// variant: behind_the_guard ; FROM=total+1024+i
// variant: before ; FROM=-1024+i%1024
// variant: the_output_itself ; FROM=i
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const int total = hidden * get_num_groups(0);
  for (int i = get_global_id(0); i < total; i += get_global_size(0)) out[i] = out[FROM];
  (void)input;
}
