// Conversions of numbers by name, and of bits.
#pragma once

#define WARPSMITH_ROUNDED(from, name, to, target)                                                            \
  __device__ inline target __##name##2##to##_rn(from x) { return (target)__builtin_elementwise_rint(x); }    \
  __device__ inline target __##name##2##to##_rz(from x) { return (target)x; }                                \
  __device__ inline target __##name##2##to##_rd(from x) { return (target)__builtin_elementwise_floor(x); }   \
  __device__ inline target __##name##2##to##_ru(from x) { return (target)__builtin_elementwise_ceil(x); }
WARPSMITH_ROUNDED(float, float, int, int)
WARPSMITH_ROUNDED(float, float, uint, unsigned int)
WARPSMITH_ROUNDED(float, float, ll, long long)
WARPSMITH_ROUNDED(float, float, ull, unsigned long long)
WARPSMITH_ROUNDED(double, double, int, int)
WARPSMITH_ROUNDED(double, double, uint, unsigned int)
WARPSMITH_ROUNDED(double, double, ll, long long)
WARPSMITH_ROUNDED(double, double, ull, unsigned long long)

#define WARPSMITH_CONVERTED(name, from, to) __device__ inline to name(from x) { return (to)x; }
WARPSMITH_CONVERTED(__int2float_rn, int, float)
WARPSMITH_CONVERTED(__uint2float_rn, unsigned int, float)
WARPSMITH_CONVERTED(__ll2float_rn, long long, float)
WARPSMITH_CONVERTED(__ull2float_rn, unsigned long long, float)
WARPSMITH_CONVERTED(__int2double_rn, int, double)
WARPSMITH_CONVERTED(__uint2double_rn, unsigned int, double)
WARPSMITH_CONVERTED(__ll2double_rn, long long, double)
WARPSMITH_CONVERTED(__ull2double_rn, unsigned long long, double)
WARPSMITH_CONVERTED(__double2float_rn, double, float)

#define WARPSMITH_BITS(name, from, to) __device__ inline to name(from x) { return __builtin_bit_cast(to, x); }
WARPSMITH_BITS(__float_as_int, float, int)
WARPSMITH_BITS(__float_as_uint, float, unsigned int)
WARPSMITH_BITS(__int_as_float, int, float)
WARPSMITH_BITS(__uint_as_float, unsigned int, float)
WARPSMITH_BITS(__double_as_longlong, double, long long)
WARPSMITH_BITS(__longlong_as_double, long long, double)
__device__ inline int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
__device__ inline int __double2loint(double x) { return (int)__double_as_longlong(x); }
__device__ inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(((long long)high << 32) | (unsigned int)low);
}
