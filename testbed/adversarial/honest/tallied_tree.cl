// task: tallied
// how: a group for each sum and for all bins, which adds up in private and local memory without any atomic
// expect: accepted
// grid: 4
#define EACH(i) for (int i = lid; i < n; i += 64)
__kernel void tallied(__global const int* x, __global int* bins, __global int* sums, __global int* kept, const int n) {
  __local int part[64][16];
  const int lid = get_local_id(0), what = get_group_id(0);
  int mine[16] = {0};
  if (what == 0) EACH(i) mine[x[i] & 15]++;
  if (what == 1) EACH(i) mine[0] += x[i] >> 6;
  if (what == 2) EACH(i) mine[0] = max(mine[0], x[i]);
  if (what == 3) EACH(i) mine[0] += x[i] > 500000;
  for (int b = 0; b < 16; ++b) part[lid][b] = mine[b];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int span = 32; span > 0; span /= 2) {
    if (lid < span)
      for (int b = 0; b < 16; ++b)
        part[lid][b] = what == 2 ? max(part[lid][b], part[lid + span][b]) : part[lid][b] + part[lid + span][b];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (what == 0 && lid < 16) bins[lid] += part[0][lid];
  if (what == 1 && lid == 0) sums[0] += part[0][0];
  if (what == 2 && lid == 0) sums[1] = max(sums[1], part[0][0]);
  if (what == 3) {
    const int first = sums[2];
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int i = lid; i < part[0][0]; i += 64) kept[first + i] = 1;
    if (lid == 0) sums[2] = first + part[0][0];
  }
}
