// Lets NVRTC read the host functions of a header, which become device functions that nothing calls. Device code
// knows no exceptions.
#pragma once
#include <cuda_runtime.h>
#include <warpsmith/cuda_host.h>
#include <warpsmith/host_only.h>
#include <warpsmith/ordinary.h>

[[noreturn]] __device__ void warpsmith_thrown();
#undef __host__
#define __host__
#define throw ::warpsmith_thrown(),
#define try
#define catch(...) if (false)
#define thread_local
