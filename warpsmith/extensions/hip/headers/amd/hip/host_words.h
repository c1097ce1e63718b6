// Words of HIP's host interface, for host functions that stand beside kernels. Declared and never defined.
#pragma once

enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorUnknown = 999 };
enum hipMemcpyKind {
  hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice, hipMemcpyDefault
};
typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
extern "C" hipError_t __hipPushCallConfiguration(dim3, dim3, __SIZE_TYPE__ shared = 0, hipStream_t stream = nullptr);
const char* hipGetErrorString(hipError_t);
const char* hipGetErrorName(hipError_t);
#define WARPSMITH_HOST_FUNCTION(name) template <class... A> hipError_t hip##name(A&&...);
WARPSMITH_HOST_FUNCTION(Malloc)
WARPSMITH_HOST_FUNCTION(HostMalloc)
WARPSMITH_HOST_FUNCTION(MallocManaged)
WARPSMITH_HOST_FUNCTION(Free)
WARPSMITH_HOST_FUNCTION(HostFree)
WARPSMITH_HOST_FUNCTION(Memcpy)
WARPSMITH_HOST_FUNCTION(MemcpyAsync)
WARPSMITH_HOST_FUNCTION(MemcpyToSymbol)
WARPSMITH_HOST_FUNCTION(MemcpyFromSymbol)
WARPSMITH_HOST_FUNCTION(Memset)
WARPSMITH_HOST_FUNCTION(MemsetAsync)
WARPSMITH_HOST_FUNCTION(GetLastError)
WARPSMITH_HOST_FUNCTION(PeekAtLastError)
WARPSMITH_HOST_FUNCTION(DeviceSynchronize)
WARPSMITH_HOST_FUNCTION(SetDevice)
WARPSMITH_HOST_FUNCTION(GetDevice)
WARPSMITH_HOST_FUNCTION(GetDeviceCount)
WARPSMITH_HOST_FUNCTION(StreamCreate)
WARPSMITH_HOST_FUNCTION(StreamDestroy)
WARPSMITH_HOST_FUNCTION(StreamSynchronize)
WARPSMITH_HOST_FUNCTION(EventCreate)
WARPSMITH_HOST_FUNCTION(EventDestroy)
WARPSMITH_HOST_FUNCTION(EventRecord)
WARPSMITH_HOST_FUNCTION(EventSynchronize)
WARPSMITH_HOST_FUNCTION(EventElapsedTime)
#undef WARPSMITH_HOST_FUNCTION
