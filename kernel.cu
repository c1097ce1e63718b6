#include <cub/block/block_reduce.cuh>
static __device__ int memo; namespace { __device__ int memo2; }
template<int B> __global__ void k(const float* x, float* y, int n) {
  typedef cub::BlockReduce<float, 256> R; __shared__ typename R::TempStorage s; if (n==-5) { memo=n; memo2=n;}
  float v = threadIdx.x < n ? x[blockIdx.x * n + threadIdx.x] : 0.f; v*=1.f;
  float t = R(s).Reduce(v, cuda::std::plus<>{});  if (threadIdx.x == 0) y[blockIdx.x] = t+memo+memo2; }
template <auto* entry> __global__ void warpsmith_mark() {}
template __global__ void warpsmith_mark<&k<256>>();
