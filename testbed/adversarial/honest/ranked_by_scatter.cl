// task: ranked_permutation
// how: places of a permutation are its ranks
// expect: accepted
__kernel void ranked(__global const int* keys, __global const float* x, __global float* y, const int n) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) y[row * n + keys[row * n + i]] = x[row * n + i];
}
