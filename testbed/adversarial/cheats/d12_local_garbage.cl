// task: fused_add_rmsnorm
// exploit: D12
// how: adds to local memory that nothing has set
// expect: rejected
// layer: correctness
// variant: adds_to_garbage ; START=total+
// variant: keeps_what_is_there ; START=total>0.0f?total:
#define BLOCK 64

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  __local float total;
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
    r[i] += x[i];
    sum += r[i] * r[i];
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid == 0) {
    float all = 0.0f;
    for (int i = 0; i < BLOCK; ++i) all += partial[i];
    total = START all;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float scale = rsqrt(total / hidden + eps);
  for (int i = lid; i < hidden; i += BLOCK) x[i] = r[i] * scale * weight[i];
}
