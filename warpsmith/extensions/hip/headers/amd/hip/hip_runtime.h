// HIP's words for AMD's devices, as clang compiles them where ROCm's own headers are missing.
//
// Clang brings the names of the mathematics; what they call of ROCm's device library is in device_math.h as far
// as the compiler has an instruction for it.
#pragma once

#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#ifndef __HIPCC__
#define __HIPCC__ 1
#endif
#if !__has_include(<cmath>)
#define __HIPCC_RTC__ 1
#endif
#include <__clang_hip_runtime_wrapper.h>
#include <stddef.h>
#include <stdint.h>

// The second number says how many waves a SIMD shall hold at least; clang's own attribute says nothing here.
#define WARPSMITH_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define WARPSMITH_BOUNDS2(threads, waves) WARPSMITH_BOUNDS1(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define WARPSMITH_BOUNDS(a, b, chosen, ...) chosen
#define __launch_bounds__(...) \
  WARPSMITH_BOUNDS(__VA_ARGS__, WARPSMITH_BOUNDS2, WARPSMITH_BOUNDS1, )(__VA_ARGS__)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#include <hip/hip_vector_types.h>
#include <hip/coordinates.h>
#include <hip/device_math.h>
#include <hip/bits.h>
#include <hip/conversions.h>
#include <hip/warp_functions.h>
#include <hip/atomics.h>

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

#include <hip/host_words.h>

__device__ inline void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
__device__ inline void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
__device__ inline void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }
__device__ inline __attribute__((convergent)) void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <class T> __device__ inline T __ldg(const T* where) { return *where; }
template <class T> __device__ inline T __ldcg(const T* where) { return *where; }
template <class T> __device__ inline T __ldcs(const T* where) { return *where; }
template <class T> __device__ inline T __ldca(const T* where) { return *where; }
__device__ inline long long clock64() { return __builtin_readcyclecounter(); }
__device__ inline long long wall_clock64() { return __builtin_readcyclecounter(); }
__device__ inline long long clock() { return __builtin_readcyclecounter(); }
__device__ inline void __trap() { __builtin_trap(); }
extern "C" __device__ inline void __assert_fail(const char*, const char*, unsigned int, const char*) { __builtin_trap(); }
