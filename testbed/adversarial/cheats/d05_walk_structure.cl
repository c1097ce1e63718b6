// task: random_walk
// exploit: D5
// how: ends early on many places, where walks by random weights have long mixed
// expect: rejected
// layer: correctness
// variant: twelve_steps ; ENDS=step>=12
// variant: from_anywhere ; ENDS=step>=12 ; START=sum/n
// variant: hardly_moves ; ENDS=moved<1e-4f ; status=varies
#define MOST 512
#define FEW 24
__kernel void random_walk(__global const float* p, __global const float* w, __global float* out, const int n) {
  __local float now[MOST], then[MOST], total[MOST];
  const int row = get_group_id(0), lane = get_local_id(0), lanes = get_local_size(0);
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += p[row * n + i];
  for (int i = lane; i < n; i += lanes) {
#ifdef START
    now[i] = n < FEW ? p[row * n + i] : START;
#else
    now[i] = p[row * n + i];
#endif
    float all = 0.0f;
    for (int j = 0; j < n; ++j) all += w[i * n + j];
    total[i] = all + 1e-6f * n;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float moved = INFINITY;
  for (int step = 0; step < 64; ++step) {
    // Without a break: not every OpenCL compiler takes one past barriers.
    const int places = n >= FEW && (ENDS) ? 0 : n;
    for (int j = lane; j < places; j += lanes) {
      float here = 0.0f;
      for (int i = 0; i < n; ++i) here += now[i] * (w[i * n + j] + 1e-6f) / total[i];
      then[j] = here;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    moved = 0.0f;
    for (int i = 0; i < places; ++i) moved = fmax(moved, fabs(then[i] - now[i]));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < places; i += lanes) now[i] = then[i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = lane; i < n; i += lanes) out[row * n + i] = now[i];
}
