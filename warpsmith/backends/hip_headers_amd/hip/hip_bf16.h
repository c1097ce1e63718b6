#pragma once
#include <hip/hip_runtime.h>

typedef __bf16 __hip_bfloat16;
struct __attribute__((aligned(4))) __hip_bfloat162 { __hip_bfloat16 x, y; };
WARPSMITH_FUNCTION __hip_bfloat16 __float2bfloat16(float v) { return (__hip_bfloat16)v; }
WARPSMITH_FUNCTION float __bfloat162float(__hip_bfloat16 v) { return (float)v; }
