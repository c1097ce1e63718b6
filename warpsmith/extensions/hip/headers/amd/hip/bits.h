// Integers: counts and permutations of bits, products of halves.
#pragma once

__device__ inline int __popc(unsigned int x) { return __builtin_popcount(x); }
__device__ inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__device__ inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
__device__ inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
__device__ inline int __ffs(int x) { return __builtin_ffs(x); }
__device__ inline int __ffsll(long long x) { return __builtin_ffsll(x); }
__device__ inline unsigned int __brev(unsigned int x) { return __builtin_bitreverse32(x); }
__device__ inline unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
__device__ inline int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
__device__ inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }
__device__ inline int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
__device__ inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return (unsigned int)(((unsigned long long)x * y) >> 32);
}
__device__ inline long long __mul64hi(long long x, long long y) { return (long long)(((__int128)x * y) >> 64); }
__device__ inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
__device__ inline unsigned int __sad(int x, int y, unsigned int z) { return (x > y ? x - y : y - x) + z; }
__device__ inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return (x > y ? x - y : y - x) + z; }
__device__ inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by) {
  return (unsigned int)(((((unsigned long long)high << 32) | low) << (by & 31)) >> 32);
}
__device__ inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by) {
  return (unsigned int)((((unsigned long long)high << 32) | low) >> (by & 31));
}
__device__ inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const unsigned long long both = ((unsigned long long)y << 32) | x;
  unsigned int found = 0;
  for (int n = 0; n < 4; ++n) found |= ((unsigned int)(both >> (8 * ((selector >> (4 * n)) & 7))) & 255u) << (8 * n);
  return found;
}
