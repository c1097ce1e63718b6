// OpenCL's words in CUDA, so that one text of the corpus serves both back ends.
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define __constant __constant__ const
#define __private
#define restrict __restrict__
#define CLK_LOCAL_MEM_FENCE 0
#define CLK_GLOBAL_MEM_FENCE 1
#define barrier(fence) __syncthreads()
#define INFINITY __int_as_float(0x7f800000)
#define as_int(x) __float_as_int(x)
#define as_float(x) __int_as_float(x)
#define nan(code) __int_as_float(0x7fc00000)
#define native_exp(x) __expf(x)
#define native_recip(x) __frcp_rn(x)
#define native_rsqrt(x) rsqrtf(x)
#define native_divide(a, b) __fdividef(a, b)
#define mad(a, b, c) fmaf(a, b, c)
#define atomic_inc(p) atomicAdd((int*)(p), 1)
#define atomic_add(p, v) atomicAdd((int*)(p), v)
#define atomic_max(p, v) atomicMax((int*)(p), v)
#define atomic_or(p, v) atomicOr((int*)(p), v)
#define atomic_xchg(p, v) atomicExch((int*)(p), v)
#define prefetch(p, n)
#define STATE __device__

typedef unsigned int uint;
typedef unsigned long long ulong;

struct half {
  unsigned short bits;
};

__device__ inline uint pick(uint x, uint y, uint z, int d) { return d == 0 ? x : d == 1 ? y : z; }
__device__ inline uint get_local_id(int d) { return pick(threadIdx.x, threadIdx.y, threadIdx.z, d); }
__device__ inline uint get_group_id(int d) { return pick(blockIdx.x, blockIdx.y, blockIdx.z, d); }
__device__ inline uint get_local_size(int d) { return pick(blockDim.x, blockDim.y, blockDim.z, d); }
__device__ inline uint get_num_groups(int d) { return pick(gridDim.x, gridDim.y, gridDim.z, d); }
__device__ inline uint get_global_id(int d) { return get_group_id(d) * get_local_size(d) + get_local_id(d); }
__device__ inline uint get_global_size(int d) { return get_num_groups(d) * get_local_size(d); }

__device__ inline float vload_half(size_t i, const half* p) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(p[i].bits));
  return value;
}

__device__ inline void vstore_half(float value, size_t i, half* p) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  p[i].bits = bits;
}

__device__ inline float4 vload4(size_t i, const float* p) {
  float4 v;
  v.x = p[4 * i], v.y = p[4 * i + 1], v.z = p[4 * i + 2], v.w = p[4 * i + 3];
  return v;
}

__device__ inline void vstore4(float4 v, size_t i, float* p) {
  p[4 * i] = v.x, p[4 * i + 1] = v.y, p[4 * i + 2] = v.z, p[4 * i + 3] = v.w;
}

__device__ inline float2 vload2(size_t i, const float* p) {
  float2 v;
  v.x = p[2 * i], v.y = p[2 * i + 1];
  return v;
}

__device__ inline void vstore2(float2 v, size_t i, float* p) { p[2 * i] = v.x, p[2 * i + 1] = v.y; }
