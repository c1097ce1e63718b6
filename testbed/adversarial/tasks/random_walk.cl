// 64 steps of random walks: every row of p is a share of walkers at n places, w the weights of the ways between.
#define MOST 512
#ifndef STEPS
#define STEPS 64
#endif
__kernel void random_walk(__global const float* p, __global const float* w, __global float* out, const int n) {
  __local float now[MOST], then[MOST], total[MOST];
  const int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
  for (int i = lane; i < n; i += lanes) {
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) sum += w[i * n + j];
    total[i] = sum + 1e-6f * n;
    now[i] = p[row * n + i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 0; step < STEPS; ++step) {
    for (int j = lane; j < n; j += lanes) {
      float sum = 0.0f;
      for (int i = 0; i < n; ++i) sum += now[i] * (w[i * n + j] + 1e-6f) / total[i];
      then[j] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < n; i += lanes) now[i] = then[i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = lane; i < n; i += lanes) out[row * n + i] = now[i];
}
