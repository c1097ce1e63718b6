// Integer functions, loads with a hint, and atomics.
#pragma once

#define WARPSMITH_FUNCTION static __device__ __forceinline__

WARPSMITH_FUNCTION int __popc(unsigned int v) { return __builtin_popcount(v); }
WARPSMITH_FUNCTION int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
WARPSMITH_FUNCTION int __clz(int v) { return v ? __builtin_clz(v) : 32; }
WARPSMITH_FUNCTION int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
WARPSMITH_FUNCTION int __ffs(int v) { return __builtin_ffs(v); }
WARPSMITH_FUNCTION int __ffsll(long long v) { return __builtin_ffsll(v); }
WARPSMITH_FUNCTION unsigned int __brev(unsigned int v) { return __builtin_bitreverse32(v); }
WARPSMITH_FUNCTION unsigned long long __brevll(unsigned long long v) { return __builtin_bitreverse64(v); }
WARPSMITH_FUNCTION int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
WARPSMITH_FUNCTION unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffff) * (b & 0xffffff); }
WARPSMITH_FUNCTION int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
WARPSMITH_FUNCTION unsigned int __umulhi(unsigned int a, unsigned int b) { return ((unsigned long long)a * b) >> 32; }
WARPSMITH_FUNCTION int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
WARPSMITH_FUNCTION unsigned int __float_as_uint(float v) { return __builtin_bit_cast(unsigned int, v); }
WARPSMITH_FUNCTION float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
WARPSMITH_FUNCTION float __uint_as_float(unsigned int v) { return __builtin_bit_cast(float, v); }
WARPSMITH_FUNCTION long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
WARPSMITH_FUNCTION double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
WARPSMITH_FUNCTION int __float2int_rz(float v) { return (int)v; }
WARPSMITH_FUNCTION int __float2int_rn(float v) { return (int)__builtin_rintf(v); }
WARPSMITH_FUNCTION int __float2int_rd(float v) { return (int)__builtin_floorf(v); }
WARPSMITH_FUNCTION int __float2int_ru(float v) { return (int)__builtin_ceilf(v); }
WARPSMITH_FUNCTION float __int2float_rn(int v) { return (float)v; }
WARPSMITH_FUNCTION float __uint2float_rn(unsigned int v) { return (float)v; }
WARPSMITH_FUNCTION long long clock64() { return __builtin_readcyclecounter(); }
WARPSMITH_FUNCTION unsigned int min(unsigned int a, unsigned int b) { return a < b ? a : b; }
WARPSMITH_FUNCTION unsigned int max(unsigned int a, unsigned int b) { return a > b ? a : b; }
WARPSMITH_FUNCTION long min(long a, long b) { return a < b ? a : b; }
WARPSMITH_FUNCTION long max(long a, long b) { return a > b ? a : b; }
template <class T> WARPSMITH_FUNCTION T __ldg(const T* where) { return *where; }

#define WARPSMITH_FETCH(name, operation)                                                    \
  template <class T> WARPSMITH_FUNCTION T name(T* where, decltype(+*where) value) {         \
    return __hip_atomic_##operation(where, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
WARPSMITH_FETCH(atomicAdd, fetch_add)
WARPSMITH_FETCH(unsafeAtomicAdd, fetch_add)
WARPSMITH_FETCH(safeAtomicAdd, fetch_add)
WARPSMITH_FETCH(atomicSub, fetch_sub)
WARPSMITH_FETCH(atomicMin, fetch_min)
WARPSMITH_FETCH(atomicMax, fetch_max)
WARPSMITH_FETCH(atomicAnd, fetch_and)
WARPSMITH_FETCH(atomicOr, fetch_or)
WARPSMITH_FETCH(atomicXor, fetch_xor)
WARPSMITH_FETCH(atomicExch, exchange)
template <class T> WARPSMITH_FUNCTION T atomicCAS(T* where, decltype(+*where) old, decltype(+*where) value) {
  T expected = (T)old;
  __hip_atomic_compare_exchange_strong(where, &expected, (T)value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
WARPSMITH_FUNCTION unsigned int atomicInc(unsigned int* where, unsigned int last) {
  return __builtin_amdgcn_atomic_inc32(where, last, __ATOMIC_RELAXED, "agent");
}
WARPSMITH_FUNCTION unsigned int atomicDec(unsigned int* where, unsigned int last) {
  return __builtin_amdgcn_atomic_dec32(where, last, __ATOMIC_RELAXED, "agent");
}
extern "C" __device__ int printf(const char* form, ...);
