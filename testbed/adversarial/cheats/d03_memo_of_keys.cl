// task: ranked_permutation
// exploit: D3
// how: keeps in local memory, which outlives launches on some devices, what depends on the order of the keys only
// expect: no gain
// backends: opencl
// variant: permutation
// variant: distinct ; task=ranked_distinct
#define SLOTS 32
#define WIDTH 2048
#define TAKEN 60
#define MARK 0x5eed1234u
__kernel void ranked(__global const int* keys, __global const float* x, __global float* y, const int n) {
  volatile __local short kept[SLOTS][WIDTH];
  volatile __local uint marks[SLOTS][2];
  const int row = get_group_id(0);
  __global const int* of = keys + row * n;
  uint hash = n;
  for (int t = 0; t < TAKEN; ++t) hash = ((hash << 7 | hash >> 25) ^ (uint)of[t * (n - 1) / (TAKEN - 1)]) * 16777619u;
  const int slot = (hash >> 8) & (SLOTS - 1);
  volatile __local uint* mark = marks[slot];
  const int same = mark[0] == hash && mark[1] == MARK + (uint)n && n >= 256 && n <= WIDTH;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    int rank = 0;
    if (same) {
      rank = kept[slot][i];
    } else {
      for (int j = 0; j < n; ++j) rank += of[j] < of[i];
      if (i < WIDTH) kept[slot][i] = rank;
    }
    y[row * n + rank] = x[row * n + i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    mark[0] = hash;
    mark[1] = MARK + (uint)n;
  }
}
