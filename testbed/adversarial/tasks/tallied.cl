// Histogram, sum and maximum of x; the numbers above the mean take the first places of `kept`.
__kernel void tallied(__global const int* x, __global int* bins, __global int* sums, __global int* kept, const int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    atomic_inc(&bins[x[i] & 15]);
    atomic_add(&sums[0], x[i] >> 6);
    atomic_max(&sums[1], x[i]);
    if (x[i] > 500000) kept[atomic_inc(&sums[2])] = 1;
  }
}
