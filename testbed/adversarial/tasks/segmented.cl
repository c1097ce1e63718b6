// y = x times the weight of the segment in which an element lies; segment s begins at offsets[s].
__kernel void segmented(__global const int* offsets, __global const float* x, __global const float* weights,
                        __global float* y, const int n, const int segments) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    int at = 0;
    for (int s = 1; s < segments; ++s) at += offsets[row * (segments + 1) + s] <= i;
    y[row * n + i] = x[row * n + i] * weights[at];
  }
}
