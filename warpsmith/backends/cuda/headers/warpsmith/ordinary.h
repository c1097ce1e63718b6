// What a source sees under nvcc without including it.
#pragma once
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <cuda_device_runtime_api.h>
#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <warpsmith/algorithms.h>
#include <warpsmith/library.h>
#include <warpsmith/mathematics.h>

#define __extension__
// NVTX is declared only, as what else a host has: its functions need the system's headers.
#define NVTX_NO_IMPL
