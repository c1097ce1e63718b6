// Functions of a warp without a mask: they speak to the lanes that run together.
#pragma once

template <class T> __device__ inline T __shfl(T value, int lane, int width = warpSize) {
  return __shfl_sync(__activemask(), value, lane, width);
}
template <class T> __device__ inline T __shfl_up(T value, unsigned int delta, int width = warpSize) {
  return __shfl_up_sync(__activemask(), value, delta, width);
}
template <class T> __device__ inline T __shfl_down(T value, unsigned int delta, int width = warpSize) {
  return __shfl_down_sync(__activemask(), value, delta, width);
}
template <class T> __device__ inline T __shfl_xor(T value, int mask, int width = warpSize) {
  return __shfl_xor_sync(__activemask(), value, mask, width);
}
__device__ inline unsigned long long hip__ballot(int predicate) { return __ballot_sync(__activemask(), predicate); }
__device__ inline int hip__any(int predicate) { return __any_sync(__activemask(), predicate); }
__device__ inline int hip__all(int predicate) { return __all_sync(__activemask(), predicate); }
__device__ inline unsigned int __lane_id() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

// CUDA declares the same names, with other types, for devices that are too old to be compiled for.
#define __ballot hip__ballot
#define __any hip__any
#define __all hip__all
