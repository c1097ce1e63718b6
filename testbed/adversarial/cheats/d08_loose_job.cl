// task: silu_and_mul
// exploit: D8
// how: a job whose tolerance takes anything; it must be refused as untestable before any candidate
// expect: rejected
// layer: task gate
// variant: zeros_would_pass ; FILL=0.0f ; tolerance=0 100
// variant: the_mean_would_pass ; FILL=0.0f ; tolerance=0 20
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) out[get_group_id(0) * (size_t)hidden + i] = FILL;
}
