#pragma once
#include <hip/hip_runtime.h>

typedef _Float16 __half;
typedef _Float16 half;
struct __attribute__((aligned(4))) __half2 { __half x, y; };
typedef __half2 half2;
WARPSMITH_FUNCTION __half __float2half(float v) { return (__half)v; }
WARPSMITH_FUNCTION __half __float2half_rn(float v) { return (__half)v; }
WARPSMITH_FUNCTION float __half2float(__half v) { return (float)v; }
WARPSMITH_FUNCTION __half2 __floats2half2_rn(float a, float b) { return {(__half)a, (__half)b}; }
WARPSMITH_FUNCTION __half2 __halves2half2(__half a, __half b) { return {a, b}; }
WARPSMITH_FUNCTION __half2 make_half2(__half a, __half b) { return {a, b}; }
WARPSMITH_FUNCTION __half2 __float2half2_rn(float v) { return {(__half)v, (__half)v}; }
WARPSMITH_FUNCTION __half2 __half2half2(__half v) { return {v, v}; }
WARPSMITH_FUNCTION float __low2float(__half2 v) { return (float)v.x; }
WARPSMITH_FUNCTION float __high2float(__half2 v) { return (float)v.y; }
WARPSMITH_FUNCTION __half __low2half(__half2 v) { return v.x; }
WARPSMITH_FUNCTION __half __high2half(__half2 v) { return v.y; }
WARPSMITH_FUNCTION float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
WARPSMITH_FUNCTION __half __hadd(__half a, __half b) { return a + b; }
WARPSMITH_FUNCTION __half __hsub(__half a, __half b) { return a - b; }
WARPSMITH_FUNCTION __half __hmul(__half a, __half b) { return a * b; }
WARPSMITH_FUNCTION __half __hdiv(__half a, __half b) { return a / b; }
WARPSMITH_FUNCTION __half __hfma(__half a, __half b, __half c) { return __builtin_fmaf16(a, b, c); }
WARPSMITH_FUNCTION __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
WARPSMITH_FUNCTION __half2 __hsub2(__half2 a, __half2 b) { return {a.x - b.x, a.y - b.y}; }
WARPSMITH_FUNCTION __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
WARPSMITH_FUNCTION __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {(__half)__builtin_fmaf16(a.x, b.x, c.x), (__half)__builtin_fmaf16(a.y, b.y, c.y)};
}
WARPSMITH_FUNCTION bool __hgt(__half a, __half b) { return a > b; }
WARPSMITH_FUNCTION bool __hlt(__half a, __half b) { return a < b; }
