// What clang's names of mathematics call of ROCm's device library and AMD's devices have instructions for.
//
// What is not here is missing without that library. `sin` and `cos` have instructions, but only for small arguments.
#pragma once

#ifndef WARPSMITH_DEVICE_LIBRARY
#define WARPSMITH_OCML(result, name) extern "C" __device__ inline __attribute__((always_inline)) result __ocml_##name

#define WARPSMITH_UNARY(name, builtin)                                                       \
  WARPSMITH_OCML(float, name##_f32)(float x) { return __builtin_elementwise_##builtin(x); }  \
  WARPSMITH_OCML(_Float16, name##_f16)(_Float16 x) { return __builtin_elementwise_##builtin(x); }
#define WARPSMITH_UNARY_DOUBLE(name, builtin) \
  WARPSMITH_UNARY(name, builtin)              \
  WARPSMITH_OCML(double, name##_f64)(double x) { return __builtin_elementwise_##builtin(x); }

WARPSMITH_UNARY(exp, exp)
WARPSMITH_UNARY(exp2, exp2)
WARPSMITH_UNARY(log, log)
WARPSMITH_UNARY(log2, log2)
WARPSMITH_UNARY(log10, log10)
WARPSMITH_UNARY_DOUBLE(sqrt, sqrt)
WARPSMITH_UNARY_DOUBLE(floor, floor)
WARPSMITH_UNARY_DOUBLE(ceil, ceil)
WARPSMITH_UNARY_DOUBLE(trunc, trunc)
WARPSMITH_UNARY_DOUBLE(rint, rint)
WARPSMITH_UNARY_DOUBLE(nearbyint, nearbyint)
WARPSMITH_UNARY_DOUBLE(fabs, abs)

#define WARPSMITH_OF_FLOATS(type, suffix, end)                                                                   \
  WARPSMITH_OCML(type, fma_##suffix)(type x, type y, type z) { return __builtin_fma##end(x, y, z); }             \
  WARPSMITH_OCML(type, fmax_##suffix)(type x, type y) { return __builtin_fmax##end(x, y); }                      \
  WARPSMITH_OCML(type, fmin_##suffix)(type x, type y) { return __builtin_fmin##end(x, y); }                      \
  WARPSMITH_OCML(type, fmod_##suffix)(type x, type y) { return __builtin_fmod##end(x, y); }                      \
  WARPSMITH_OCML(type, copysign_##suffix)(type x, type y) { return __builtin_copysign##end(x, y); }              \
  WARPSMITH_OCML(type, round_##suffix)(type x) { return __builtin_round##end(x); }                               \
  WARPSMITH_OCML(type, rsqrt_##suffix)(type x) { return (type)1 / __builtin_sqrt##end(x); }                      \
  WARPSMITH_OCML(type, fdim_##suffix)(type x, type y) { return x <= y ? (type)0 : x - y; }                       \
  WARPSMITH_OCML(int, isinf_##suffix)(type x) { return __builtin_isinf(x); }                                     \
  WARPSMITH_OCML(int, isnan_##suffix)(type x) { return __builtin_isnan(x); }                                     \
  WARPSMITH_OCML(int, isfinite_##suffix)(type x) { return __builtin_isfinite(x); }
WARPSMITH_OF_FLOATS(float, f32, f)
WARPSMITH_OF_FLOATS(double, f64, )
WARPSMITH_OF_FLOATS(_Float16, f16, f16)

WARPSMITH_OCML(float, exp10_f32)(float x) { return __builtin_exp10f(x); }
WARPSMITH_OCML(float, native_sqrt_f32)(float x) { return __builtin_amdgcn_sqrtf(x); }
WARPSMITH_OCML(float, native_rsqrt_f32)(float x) { return __builtin_amdgcn_rsqf(x); }
WARPSMITH_OCML(float, native_sin_f32)(float x) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0.15915494309f)); }
WARPSMITH_OCML(float, native_cos_f32)(float x) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0.15915494309f)); }
WARPSMITH_OCML(float, native_exp_f32)(float x) { return __builtin_amdgcn_exp2f(x * 1.44269504089f); }
WARPSMITH_OCML(float, native_exp2_f32)(float x) { return __builtin_amdgcn_exp2f(x); }
WARPSMITH_OCML(float, native_log2_f32)(float x) { return __builtin_amdgcn_logf(x); }
WARPSMITH_OCML(float, native_log_f32)(float x) { return __builtin_amdgcn_logf(x) * 0.69314718056f; }
#endif

extern "C" {
__device__ int __ockl_wgred_add_i32(int);
__device__ int __ockl_wgred_and_i32(int);
__device__ int __ockl_wgred_or_i32(int);
}
__device__ inline int __syncthreads_count(int predicate) { return __ockl_wgred_add_i32(!!predicate); }
__device__ inline int __syncthreads_and(int predicate) { return __ockl_wgred_and_i32(!!predicate); }
__device__ inline int __syncthreads_or(int predicate) { return __ockl_wgred_or_i32(!!predicate); }
