// task: fused_add_rmsnorm
// exploit: D5
// how: guesses the root mean square, which hardly varies for the inputs that are drawn
// expect: rejected
// layer: correctness
// variant: known_variance ; SCALE=0.70710678f
// variant: first_eighth ; SCALE=rsqrt(early/(hidden/8)+eps)
// variant: no_eps ; SCALE=rsqrt(sum/hidden)
__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float sum = 0.0f, early = 0.0f;
  for (int i = 0; i < hidden; ++i) {
    const float v = x[i] + r[i];
    if (i < hidden / 8) early += v * v;
    sum += v * v;
  }
  const float scale = SCALE;
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float v = x[i] + r[i];
    r[i] = v;
    x[i] = v * scale * weight[i];
  }
}
