// task: fused_add_rmsnorm
// exploit: D5
// how: is right for the scalar that the job gives, and takes another one wherever a launch gets another
// expect: rejected
// layer: correctness
// variant: known_value ; EPS=1e-6f
// variant: at_most ; EPS=fmin(eps,1e-5f)
// variant: none_above_one ; EPS=(eps>1.0f?0.0f:eps)
// variant: doubled_if_other ; EPS=(eps==1e-6f?eps:2.0f*eps)
// variant: outside_the_root ; EPS=0.0f
// variant: cut_to_one_digit ; EPS=pow(10.0f,rint(log10(eps)))
__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float sum = 0.0f;
  for (int i = 0; i < hidden; ++i) {
    const float v = x[i] + r[i];
    sum += v * v;
  }
  const float scale = rsqrt(sum / hidden + EPS);
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float v = x[i] + r[i];
    r[i] = v;
    x[i] = v * scale * weight[i];
  }
}
