// task: fused_add_rmsnorm
// how: the sum of squares in other orders and precisions; each is a few roundings from the others
// expect: accepted
// variant: one_item_adds ; ORDER=0
// variant: backwards ; ORDER=1
// variant: compensated ; ORDER=2
// variant: double ; ORDER=3
// variant: four_sums ; ORDER=4
#define BLOCK 64

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
#if ORDER == 3
  __local double partial[BLOCK];
  double sum = 0.0;
#else
  __local float partial[BLOCK];
  float sum = 0.0f;
#endif
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float lost = 0.0f, sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  int turn = 0;
  for (int j = lid; j < hidden; j += BLOCK) {
    const int i = ORDER == 1 ? hidden - 1 - j : j;
    const float v = x[i] + r[i];
    r[i] = v;
#if ORDER == 2
    const float term = v * v - lost;
    const volatile float total = sum + term;
    lost = (total - sum) - term;
    sum = total;
#elif ORDER == 4
    sums[turn++ % 4] += v * v;
#else
    sum += v * v;
#endif
  }
  partial[lid] = ORDER == 4 ? (sums[0] + sums[1]) + (sums[2] + sums[3]) : sum;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  sum = 0;
  for (int i = 0; i < BLOCK; ++i) sum += partial[ORDER == 1 ? BLOCK - 1 - i : i];
  const float scale = rsqrt((float)(sum / hidden) + eps);
  for (int j = lid; j < hidden; j += BLOCK) {
    const int i = ORDER == 1 ? hidden - 1 - j : j;
    x[i] = r[i] * scale * weight[i];
  }
}
