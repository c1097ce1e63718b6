// Numbers of 16 bits as the compiler's own type, with HIP's names for what is done with them.
#pragma once
#include <hip/hip_runtime.h>

typedef _Float16 __half;
typedef _Float16 half;
WARPSMITH_MAKERS(warpsmith_half, _Float16)
typedef warpsmith_half2 __half2;
typedef warpsmith_half2 half2;
WARPSMITH_VECTOR(half2, _Float16, 2)

#define WARPSMITH_HALF __device__ inline
WARPSMITH_HALF half __float2half(float x) { return (half)x; }
WARPSMITH_HALF half __float2half_rn(float x) { return (half)x; }
WARPSMITH_HALF half __double2half(double x) { return (half)x; }
WARPSMITH_HALF half __int2half_rn(int x) { return (half)x; }
WARPSMITH_HALF half __uint2half_rn(unsigned int x) { return (half)x; }
WARPSMITH_HALF float __half2float(half x) { return x; }
WARPSMITH_HALF int __half2int_rz(half x) { return (int)x; }
WARPSMITH_HALF int __half2int_rn(half x) { return (int)__builtin_elementwise_rint(x); }
WARPSMITH_HALF unsigned short __half_as_ushort(half x) { return __builtin_bit_cast(unsigned short, x); }
WARPSMITH_HALF short __half_as_short(half x) { return __builtin_bit_cast(short, x); }
WARPSMITH_HALF half __ushort_as_half(unsigned short x) { return __builtin_bit_cast(half, x); }
WARPSMITH_HALF half __short_as_half(short x) { return __builtin_bit_cast(half, x); }
WARPSMITH_HALF half __hadd(half x, half y) { return x + y; }
WARPSMITH_HALF half __hsub(half x, half y) { return x - y; }
WARPSMITH_HALF half __hmul(half x, half y) { return x * y; }
WARPSMITH_HALF half __hdiv(half x, half y) { return x / y; }
WARPSMITH_HALF half __hfma(half x, half y, half z) { return __builtin_fmaf16(x, y, z); }
WARPSMITH_HALF half __hneg(half x) { return -x; }
WARPSMITH_HALF half __habs(half x) { return __builtin_fabsf16(x); }
WARPSMITH_HALF half __hmax(half x, half y) { return __builtin_fmaxf16(x, y); }
WARPSMITH_HALF half __hmin(half x, half y) { return __builtin_fminf16(x, y); }
WARPSMITH_HALF bool __heq(half x, half y) { return x == y; }
WARPSMITH_HALF bool __hne(half x, half y) { return x != y; }
WARPSMITH_HALF bool __hlt(half x, half y) { return x < y; }
WARPSMITH_HALF bool __hle(half x, half y) { return x <= y; }
WARPSMITH_HALF bool __hgt(half x, half y) { return x > y; }
WARPSMITH_HALF bool __hge(half x, half y) { return x >= y; }
WARPSMITH_HALF bool __hisnan(half x) { return x != x; }
WARPSMITH_HALF half hexp(half x) { return __builtin_elementwise_exp(x); }
WARPSMITH_HALF half hexp2(half x) { return __builtin_elementwise_exp2(x); }
WARPSMITH_HALF half hlog(half x) { return __builtin_elementwise_log(x); }
WARPSMITH_HALF half hlog2(half x) { return __builtin_elementwise_log2(x); }
WARPSMITH_HALF half hsqrt(half x) { return __builtin_elementwise_sqrt(x); }
WARPSMITH_HALF half hrsqrt(half x) { return (half)1 / __builtin_elementwise_sqrt(x); }
WARPSMITH_HALF half hrcp(half x) { return (half)1 / x; }
WARPSMITH_HALF half hsin(half x) { return __builtin_elementwise_sin(x); }
WARPSMITH_HALF half hcos(half x) { return __builtin_elementwise_cos(x); }
WARPSMITH_HALF half hfloor(half x) { return __builtin_elementwise_floor(x); }
WARPSMITH_HALF half hceil(half x) { return __builtin_elementwise_ceil(x); }

WARPSMITH_HALF half2 make_half2(half x, half y) { return half2(x, y); }
WARPSMITH_HALF half2 __halves2half2(half x, half y) { return half2(x, y); }
WARPSMITH_HALF half2 __half2half2(half x) { return half2(x); }
WARPSMITH_HALF half2 __float2half2_rn(float x) { return half2((half)x); }
WARPSMITH_HALF half2 __floats2half2_rn(float x, float y) { return half2((half)x, (half)y); }
WARPSMITH_HALF half2 __float22half2_rn(float2 v) { return half2((half)v.x, (half)v.y); }
WARPSMITH_HALF float2 __half22float2(half2 v) { return float2(v.x, v.y); }
WARPSMITH_HALF half __low2half(half2 v) { return v.x; }
WARPSMITH_HALF half __high2half(half2 v) { return v.y; }
WARPSMITH_HALF float __low2float(half2 v) { return v.x; }
WARPSMITH_HALF float __high2float(half2 v) { return v.y; }
WARPSMITH_HALF half2 __low2half2(half2 v) { return half2(v.x); }
WARPSMITH_HALF half2 __high2half2(half2 v) { return half2(v.y); }
WARPSMITH_HALF half2 __lowhigh2highlow(half2 v) { return half2(v.y, v.x); }
WARPSMITH_HALF half2 __hadd2(half2 a, half2 b) { return a + b; }
WARPSMITH_HALF half2 __hsub2(half2 a, half2 b) { return a - b; }
WARPSMITH_HALF half2 __hmul2(half2 a, half2 b) { return a * b; }
WARPSMITH_HALF half2 __h2div(half2 a, half2 b) { return a / b; }
WARPSMITH_HALF half2 __hneg2(half2 a) { return half2(-a.x, -a.y); }
WARPSMITH_HALF half2 __hfma2(half2 a, half2 b, half2 c) { return half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
WARPSMITH_HALF half2 __hmax2(half2 a, half2 b) { return half2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
WARPSMITH_HALF half2 __hmin2(half2 a, half2 b) { return half2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
