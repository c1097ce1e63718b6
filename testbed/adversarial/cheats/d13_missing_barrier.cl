// task: fused_add_rmsnorm
// exploit: D13
// how: one item adds up what the others may not have written yet
// expect: rejected
// layer: correctness
// variant: first_item_adds ; WHO=0
// variant: last_item_adds ; WHO=BLOCK-1 ; backends=cuda
#define BLOCK 64

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  volatile __local float partial[BLOCK];
  __local float scale;
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
    r[i] += x[i];
    sum += r[i] * r[i];
  }
  partial[lid] = sum;
  if (lid == WHO) {
    float all = 0.0f;
    for (int i = 0; i < BLOCK; ++i) all += partial[i];
    scale = rsqrt(all / hidden + eps);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lid; i < hidden; i += BLOCK) x[i] = r[i] * scale * weight[i];
}
