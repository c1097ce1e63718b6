// task: tallied
// how: groups add up by themselves and merge once, by fewer atomics than the user's kernel has
// expect: accepted
#define COUNT(a, v) atomic_add(&a, v)
#define ADD(a, v) atomic_add(&a, v)
#define TOP(a, v) atomic_max(&a, v)
#define RESERVE(base, a, v) base = atomic_add(&a, v)

__kernel void tallied(__global const int* x, __global int* bins, __global int* sums, __global int* kept, const int n) {
  __local int counts[16], of_group[4];
  const int lid = get_local_id(0);
  if (lid < 16) counts[lid] = 0;
  if (lid < 4) of_group[lid] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  int sum = 0, top = 0, above = 0;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    atomic_inc(&counts[x[i] & 15]);
    sum += x[i] >> 6;
    top = max(top, x[i]);
    above += x[i] > 500000;
  }
  atomic_add(&of_group[0], sum);
  atomic_max(&of_group[1], top);
  const int place = atomic_add(&of_group[2], above);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < 16) COUNT(bins[lid], counts[lid]);
  if (lid == 0) {
    ADD(sums[0], of_group[0]);
    TOP(sums[1], of_group[1]);
    RESERVE(of_group[3], sums[2], of_group[2]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < above; ++i) kept[of_group[3] + place + i] = 1;
}
