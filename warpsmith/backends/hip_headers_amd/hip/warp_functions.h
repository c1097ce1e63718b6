// Exchanges between the lanes of a wavefront.
#pragma once

static __device__ __forceinline__ unsigned int __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
template <class T> static __device__ __forceinline__ T warpsmith_from(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int held[words] = {};
  __builtin_memcpy(held, &value, sizeof(T));
  for (int n = 0; n < words; n++) held[n] = __builtin_amdgcn_ds_bpermute(lane << 2, held[n]);
  __builtin_memcpy(&value, held, sizeof(T));
  return value;
}
template <class T> static __device__ __forceinline__ T __shfl(T value, int lane, int width = warpSize) {
  return warpsmith_from(value, (lane & (width - 1)) + ((int)__lane_id() & ~(width - 1)));
}
template <class T> static __device__ __forceinline__ T __shfl_up(T value, unsigned int delta, int width = warpSize) {
  const int own = __lane_id(), from = own - (int)delta;
  return warpsmith_from(value, from < (own & ~(width - 1)) ? own : from);
}
template <class T> static __device__ __forceinline__ T __shfl_down(T value, unsigned int delta, int width = warpSize) {
  const int own = __lane_id();
  return warpsmith_from(value, (own & (width - 1)) + (int)delta >= width ? own : own + (int)delta);
}
template <class T> static __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = warpSize) {
  const int own = __lane_id(), from = own ^ mask;
  return warpsmith_from(value, from >= ((own + width) & ~(width - 1)) ? own : from);
}
static __device__ __forceinline__ unsigned long long __ballot(int predicate) {
#if __AMDGCN_WAVEFRONT_SIZE__ == 64
  return __builtin_amdgcn_ballot_w64(predicate);
#else
  return __builtin_amdgcn_ballot_w32(predicate);
#endif
}
static __device__ __forceinline__ unsigned long long __activemask() { return __ballot(1); }
static __device__ __forceinline__ int __any(int predicate) { return __ballot(predicate) != 0; }
static __device__ __forceinline__ int __all(int predicate) { return __ballot(!predicate) == 0; }
template <class M, class T> static __device__ __forceinline__ T __shfl_sync(M, T v, int lane, int width = warpSize) {
  return __shfl(v, lane, width);
}
template <class M, class T>
static __device__ __forceinline__ T __shfl_up_sync(M, T v, unsigned int delta, int width = warpSize) {
  return __shfl_up(v, delta, width);
}
template <class M, class T>
static __device__ __forceinline__ T __shfl_down_sync(M, T v, unsigned int delta, int width = warpSize) {
  return __shfl_down(v, delta, width);
}
template <class M, class T>
static __device__ __forceinline__ T __shfl_xor_sync(M, T v, int mask, int width = warpSize) {
  return __shfl_xor(v, mask, width);
}
