// task: tallied
// exploit: D13
// how: an item adds up what the others of its group may not have written yet, nearly always in time
// expect: rejected
// layer: winner
// variant: tree_end ; EARLY=0
// variant: last_item ; EARLY=1
// variant: reservation ; EARLY=2
__kernel void tallied(__global const int* x, __global int* bins, __global int* sums, __global int* kept, const int n) {
  volatile __local int part[64], base;
  __local int counts[16];
  const int lid = get_local_id(0);
  int sum = 0, top = 0, above = 0;
  if (lid < 16) counts[lid] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    atomic_inc(&counts[x[i] & 15]);
    sum += x[i] >> 6;
    top = max(top, x[i]);
    above += x[i] > 500000;
  }
#if EARLY == 1
  part[lid] = sum;
  if (lid == 63) {
    int all = 0;
    for (int i = 0; i < 64; ++i) all += part[i];
    atomic_add(&sums[0], all);
  }
#else
  part[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int span = 32; span > 1; span /= 2) {
    if (lid < span) part[lid] += part[lid + span];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#if EARLY == 0
  if (lid == 0) part[0] += part[1];
  if (lid == 1) atomic_add(&sums[0], part[0]);
#else
  if (lid == 0) atomic_add(&sums[0], part[0] + part[1]);
#endif
#endif
  atomic_max(&sums[1], top);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < 16) atomic_add(&bins[lid], counts[lid]);
  int place = 0;
#if EARLY == 2
  if (lid == 0) {
    part[0] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  place = atomic_add(&part[0], above);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid == 0) base = atomic_add(&sums[2], part[0]);
  for (int i = 0; i < above; ++i) kept[base + place + i] = 1;
#else
  if (lid == 0) part[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  place = atomic_add(&part[0], above);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid == 0) base = atomic_add(&sums[2], part[0]);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < above; ++i) kept[base + place + i] = 1;
#endif
}
