// Functions of ROCm's device library that are an instruction or two. All others need the library itself.
#pragma once

extern "C" {
__device__ int __ockl_wgred_add_i32(int);
__device__ int __ockl_wgred_and_i32(int);
__device__ int __ockl_wgred_or_i32(int);
}
static __device__ __forceinline__ int __syncthreads_count(int predicate) { return __ockl_wgred_add_i32(!!predicate); }
static __device__ __forceinline__ int __syncthreads_and(int predicate) { return __ockl_wgred_and_i32(!!predicate); }
static __device__ __forceinline__ int __syncthreads_or(int predicate) { return __ockl_wgred_or_i32(!!predicate); }

#ifndef WARPSMITH_DEVICE_LIBRARY
extern "C" {
__device__ inline float __ocml_rsqrt_f32(float x) { return __builtin_amdgcn_rsqf(x); }
__device__ inline double __ocml_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }
__device__ inline float __ocml_native_rsqrt_f32(float x) { return __builtin_amdgcn_rsqf(x); }
__device__ inline float __ocml_native_rcp_f32(float x) { return __builtin_amdgcn_rcpf(x); }
__device__ inline float __ocml_native_sqrt_f32(float x) { return __builtin_amdgcn_sqrtf(x); }
__device__ inline float __ocml_native_exp2_f32(float x) { return __builtin_amdgcn_exp2f(x); }
__device__ inline float __ocml_native_exp_f32(float x) { return __builtin_amdgcn_exp2f(x * 1.44269504088896340736f); }
__device__ inline float __ocml_native_exp10_f32(float x) { return __builtin_amdgcn_exp2f(x * 3.32192809488736234787f); }
__device__ inline float __ocml_native_log2_f32(float x) { return __builtin_amdgcn_logf(x); }
__device__ inline float __ocml_native_log_f32(float x) { return __builtin_amdgcn_logf(x) * 0.693147180559945309417f; }
__device__ inline float __ocml_native_log10_f32(float x) { return __builtin_amdgcn_logf(x) * 0.301029995663981195214f; }
__device__ inline float __ocml_native_sin_f32(float x) { return __builtin_amdgcn_sinf(x * 0.159154943091895335769f); }
__device__ inline float __ocml_native_cos_f32(float x) { return __builtin_amdgcn_cosf(x * 0.159154943091895335769f); }
}
#endif
