// task: segmented
// how: finds the segment of an element by bisection
// expect: accepted
__kernel void segmented(__global const int* offsets, __global const float* x, __global const float* weights,
                        __global float* y, const int n, const int segments) {
  const int row = get_group_id(0);
  __global const int* of = offsets + row * (segments + 1);
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) {
    int low = 0, high = segments - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (of[middle] <= i) low = middle;
      else high = middle - 1;
    }
    y[row * n + i] = x[row * n + i] * weights[low];
  }
}
