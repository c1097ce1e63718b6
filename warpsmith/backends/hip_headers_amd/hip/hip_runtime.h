// Device code of HIP for AMD, for clang without ROCm: what HIP's own headers would bring, as far as kernels of
// one file use it. Behind clang's own header for HIP, which has the mathematics. Not run on AMD hardware.
#pragma once

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#ifndef __HIPCC__
#define __HIPCC__ 1
#endif

#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_DYNAMIC_SHARED_ATTRIBUTE
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

#include <hip/places.h>
#include <hip/vectors.h>
#include <hip/warp_functions.h>
#include <hip/scalar_functions.h>
#include <hip/library_functions.h>
#include <hip/host_words.h>
