// Each row's values in the order of its keys, which are all different.
__kernel void ranked(__global const int* keys, __global const float* x, __global float* y, const int n) {
  const int row = get_group_id(0);
  __global const int* of = keys + row * n;
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += of[j] < of[i];
    y[row * n + rank] = x[row * n + i];
  }
}
