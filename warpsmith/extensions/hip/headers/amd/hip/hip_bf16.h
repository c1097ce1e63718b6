// Numbers of bfloat16 as the compiler's own type, with HIP's names for what is done with them.
#pragma once
#include <hip/hip_runtime.h>

typedef __bf16 __hip_bfloat16;
WARPSMITH_MAKERS(warpsmith_bfloat, __bf16)
typedef warpsmith_bfloat2 __hip_bfloat162;

#define WARPSMITH_BF16 __device__ inline
WARPSMITH_BF16 __hip_bfloat16 __float2bfloat16(float x) { return (__bf16)x; }
WARPSMITH_BF16 __hip_bfloat16 __float2bfloat16_rn(float x) { return (__bf16)x; }
WARPSMITH_BF16 __hip_bfloat16 __double2bfloat16(double x) { return (__bf16)(float)x; }
WARPSMITH_BF16 float __bfloat162float(__hip_bfloat16 x) { return (float)x; }
WARPSMITH_BF16 __hip_bfloat16 __hadd(__hip_bfloat16 x, __hip_bfloat16 y) { return (__bf16)((float)x + (float)y); }
WARPSMITH_BF16 __hip_bfloat16 __hsub(__hip_bfloat16 x, __hip_bfloat16 y) { return (__bf16)((float)x - (float)y); }
WARPSMITH_BF16 __hip_bfloat16 __hmul(__hip_bfloat16 x, __hip_bfloat16 y) { return (__bf16)((float)x * (float)y); }
WARPSMITH_BF16 __hip_bfloat16 __hdiv(__hip_bfloat16 x, __hip_bfloat16 y) { return (__bf16)((float)x / (float)y); }
WARPSMITH_BF16 __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return __hip_bfloat162(x, y); }
WARPSMITH_BF16 __hip_bfloat162 __floats2bfloat162_rn(float x, float y) { return __hip_bfloat162((__bf16)x, (__bf16)y); }
WARPSMITH_BF16 float2 __bfloat1622float2(__hip_bfloat162 v) { return float2((float)v.x, (float)v.y); }
