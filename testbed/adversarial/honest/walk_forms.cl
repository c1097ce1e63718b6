// task: random_walk
// how: weights once, in shared memory; ends where a step changes no bit, so that no later one can
// expect: accepted
// variant: shares_first ; CAN_END=0
// variant: until_nothing_moves ; CAN_END=1
#define MOST 512
__kernel void random_walk(__global const float* p, __global const float* w, __global float* out, const int n) {
  __local float now[MOST], then[MOST], share[MOST];
  const int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
  for (int i = lane; i < n; i += lanes) {
    float all = 0.0f;
    for (int j = 0; j < n; ++j) all += w[i * n + j];
    share[i] = 1.0f / (all + 1e-6f * n);
    now[i] = p[row * n + i] * share[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int places = n;
  for (int step = 0; step < 64; ++step) {
    for (int j = lane; j < places; j += lanes) {
      float here = 0.0f;
      for (int i = 0; i < n; ++i) here = fma(now[i], w[i * n + j] + 1e-6f, here);
      then[j] = here * share[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int same = CAN_END;
    for (int i = 0; i < places; ++i) same &= then[i] == now[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (same) places = 0;
    for (int i = lane; i < places; i += lanes) now[i] = then[i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = lane; i < n; i += lanes) out[row * n + i] = now[i] / share[i];
}
