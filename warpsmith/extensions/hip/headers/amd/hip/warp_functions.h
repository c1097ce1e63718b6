// Functions of a wave, which speak to the lanes that run together; a mask is not looked at.
#pragma once

#if defined(__AMDGCN_WAVEFRONT_SIZE__)
constexpr int warpSize = __AMDGCN_WAVEFRONT_SIZE__;
#elif defined(__GFX9__)
constexpr int warpSize = 64;
#else
constexpr int warpSize = 32;
#endif
#if defined(__GFX9__)
#define WARPSMITH_BALLOT __builtin_amdgcn_ballot_w64
#else
#define WARPSMITH_BALLOT __builtin_amdgcn_ballot_w32
#endif
#define WARPSMITH_WAVE __device__ inline __attribute__((convergent))

__device__ inline unsigned int __lane_id() {
  const unsigned int low = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
  return warpSize == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}
WARPSMITH_WAVE unsigned long long __ballot(int predicate) { return WARPSMITH_BALLOT(predicate != 0); }
WARPSMITH_WAVE unsigned long long __activemask() { return WARPSMITH_BALLOT(true); }
WARPSMITH_WAVE int __any(int predicate) { return __ballot(predicate) != 0; }
WARPSMITH_WAVE int __all(int predicate) { return __ballot(!predicate) == 0; }
WARPSMITH_WAVE void __syncwarp(unsigned long long = ~0ull) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

template <class T> WARPSMITH_WAVE T warpsmith_from_lane(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int held[words] = {};
  __builtin_memcpy(held, &value, sizeof(T));
  for (int n = 0; n < words; ++n) held[n] = __builtin_amdgcn_ds_bpermute(lane << 2, held[n]);
  __builtin_memcpy(&value, held, sizeof(T));
  return value;
}
template <class T> WARPSMITH_WAVE T __shfl(T value, int lane, int width = warpSize) {
  return warpsmith_from_lane(value, (lane & (width - 1)) + (__lane_id() & ~(width - 1)));
}
template <class T> WARPSMITH_WAVE T __shfl_up(T value, unsigned int delta, int width = warpSize) {
  const int self = __lane_id(), other = self - (int)delta;
  return warpsmith_from_lane(value, other < (self & ~(width - 1)) ? self : other);
}
template <class T> WARPSMITH_WAVE T __shfl_down(T value, unsigned int delta, int width = warpSize) {
  const int self = __lane_id(), place = self & (width - 1);
  return warpsmith_from_lane(value, place + (int)delta >= width ? self : self + (int)delta);
}
template <class T> WARPSMITH_WAVE T __shfl_xor(T value, int mask, int width = warpSize) {
  const int self = __lane_id(), other = self ^ mask;
  return warpsmith_from_lane(value, other >= ((self + width) & ~(width - 1)) ? self : other);
}

typedef unsigned long long warpsmith_mask;
template <class T> WARPSMITH_WAVE T __shfl_sync(warpsmith_mask, T value, int lane, int width = warpSize) {
  return __shfl(value, lane, width);
}
template <class T> WARPSMITH_WAVE T __shfl_up_sync(warpsmith_mask, T value, unsigned int delta, int width = warpSize) {
  return __shfl_up(value, delta, width);
}
template <class T> WARPSMITH_WAVE T __shfl_down_sync(warpsmith_mask, T value, unsigned int delta, int width = warpSize) {
  return __shfl_down(value, delta, width);
}
template <class T> WARPSMITH_WAVE T __shfl_xor_sync(warpsmith_mask, T value, int mask, int width = warpSize) {
  return __shfl_xor(value, mask, width);
}
WARPSMITH_WAVE unsigned long long __ballot_sync(warpsmith_mask mask, int predicate) { return __ballot(predicate) & mask; }
WARPSMITH_WAVE int __any_sync(warpsmith_mask mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
WARPSMITH_WAVE int __all_sync(warpsmith_mask mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
