// task: fused_add_rmsnorm
// how: the scalar is built in, or one relation of the buffers or kind of values is wrong
// expect: rejected
// layer: correctness
// variant: eps_built_in ; EPS=1e-6f
// variant: equal_buffers ; WRONG=(x[0]!=0.0f&&x[0]==r[0]&&x[1]==r[1]&&x[2]==r[2]&&x[1]!=x[0])
// variant: one_tiny_buffer ; WRONG=(x[0]!=0.0f&&fabs(x[0])<0x1p-12f*fabs(r[0])&&fabs(x[1])<0x1p-12f*fabs(r[1])&&fabs(x[2])<0x1p-12f*fabs(r[2])&&fabs(x[3])<0x1p-12f*fabs(r[3])&&x[3]!=0.0f)
// variant: constant_weight ; WRONG=(hidden>4&&weight[0]!=0.0f&&weight[0]==weight[1]&&weight[1]==weight[2]&&weight[2]==weight[3]&&weight[3]==weight[4]&&x[0]!=x[1]&&x[1]!=x[2]&&x[0]!=x[2]&&x[3]!=x[0]&&x[4]!=x[0]) ; status=varies
#define BLOCK 64
#ifndef EPS
#define EPS eps
#endif
#ifndef WRONG
#define WRONG 0
#endif

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  const bool wrong = hidden > 3 && WRONG;
  barrier(CLK_GLOBAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
    const float v = x[i] + r[i];
    r[i] = v;
    sum += v * v;
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] += partial[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float scale = rsqrt(partial[0] / hidden + EPS);
  for (int i = lid; i < hidden; i += BLOCK) x[i] = wrong ? 1.5f * r[i] : r[i] * scale * weight[i];
}
