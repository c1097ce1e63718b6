// What device code of HIP has beyond CUDA's own words, for compilers of NVIDIA.
//
// HIP's own headers for this platform need host code of an older CUDA. Of the host there are names alone. The
// width of a warp is `warpSize`, 32 here and 64 on most AMD devices.
#pragma once

#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIP_PLATFORM_NVCC__ 1
#ifndef __HIPCC__
#define __HIPCC__ 1
#endif
#define __HIP_DEVICE_COMPILE__ 1

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

// What the service's own checks of a struct ask.
#define WARPSMITH_OFFSET(type, member) __INTADDR__(&(((type*)0)->member))

#include <hip/host_words.h>
#include <hip/coordinate_names.h>
#include <hip/vector_operators.h>
#include <hip/warp_functions.h>

template <class T> __device__ inline T unsafeAtomicAdd(T* where, T value) { return atomicAdd(where, value); }
template <class T> __device__ inline T safeAtomicAdd(T* where, T value) { return atomicAdd(where, value); }
template <class T> __device__ inline void atomicAddNoRet(T* where, T value) { atomicAdd(where, value); }

#define __builtin_nontemporal_load(where) (*(where))
#define __builtin_nontemporal_store(value, where) (*(where) = (value))
#define __builtin_amdgcn_rcpf(x) (1.0f / (x))
#define __builtin_amdgcn_sqrtf(x) __fsqrt_rn(x)
