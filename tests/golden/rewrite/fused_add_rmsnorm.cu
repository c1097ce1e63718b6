#if WS_FAST_MATH
#define WS_DIVIDE(a, b) __fdividef(a, b)
#else
#define WS_DIVIDE(a, b) ((a) / (b))
#endif
#if WS_UNROLL > 0
constexpr int ws_unroll = WS_UNROLL;
#endif
#if WS_VEC > 1
// WS_VEC elements that are loaded and stored together, 16 bytes at a time at most.
template <typename T> struct alignas(sizeof(T) * WS_VEC < 16 ? sizeof(T) * WS_VEC : 16) WsPack {
  T lane[WS_VEC];
};
template <typename T> __device__ __forceinline__ bool ws_aligned(const T* p) {
  return reinterpret_cast<size_t>(p) % alignof(WsPack<T>) == 0;
}
template <typename T> __device__ __forceinline__ WsPack<T> ws_load(const T* p) {
  return *reinterpret_cast<const WsPack<T>*>(p);
}
template <typename T> __device__ __forceinline__ WsPack<T> ws_blank(const T*) { return WsPack<T>(); }
template <typename T> __device__ __forceinline__ void ws_store(T* p, const WsPack<T>& pack) {
  *reinterpret_cast<WsPack<T>*>(p) = pack;
}
#endif
#if WS_KEEP > 0
// WS_KEEP_PACK elements that are loaded and stored together if they are aligned, 16 bytes at a time at most.
template <typename T> struct alignas(sizeof(T) * WS_KEEP_PACK < 16 ? sizeof(T) * WS_KEEP_PACK : 16) WsKeep {
  T lane[WS_KEEP_PACK];
};
template <typename T> __device__ T ws_keep_element(const T* p);
template <typename T> __device__ __forceinline__ bool ws_keep_aligned(const T* p) {
  return reinterpret_cast<size_t>(p) % alignof(WsKeep<T>) == 0;
}
template <typename T> __device__ __forceinline__ void ws_keep_load(const T* p, WsKeep<T>& pack) {
  if (ws_keep_aligned(p)) {
    pack = *reinterpret_cast<const WsKeep<T>*>(p);
  } else {
#pragma unroll
    for (int i = 0; i < WS_KEEP_PACK; ++i) pack.lane[i] = p[i];
  }
}
template <typename T> __device__ __forceinline__ void ws_keep_store(T* p, const WsKeep<T>& pack) {
  if (ws_keep_aligned(p)) {
    *reinterpret_cast<WsKeep<T>*>(p) = pack;
  } else {
#pragma unroll
    for (int i = 0; i < WS_KEEP_PACK; ++i) p[i] = pack.lane[i];
  }
}
#endif
// In place: residual += input, then input = rmsnorm(residual) * weight. One block handles one row.
#include <cuda_fp16.h>

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void __launch_bounds__(WS_BLOCK, WS_RESIDENT / (WS_BLOCK)) fused_add_rmsnorm(__half* input, __half* residual, const __half* __restrict__ weight, int hidden,
                                             float eps) {
#if WS_KEEP > 0

  __shared__ float partial[32];
  __half* x = input + (size_t)blockIdx.x * hidden;
  __half* r = residual + (size_t)blockIdx.x * hidden;

  float sum = 0.0f;
  
const int ws_kept = ((int)(hidden)) / WS_KEEP_PACK < WS_KEEP * (int)(blockDim.x) ? ((int)(hidden)) / WS_KEEP_PACK : WS_KEEP * (int)(blockDim.x);
WsKeep<__half> ws_row_0[WS_KEEP];
WsKeep<__half> ws_row_1[WS_KEEP];
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (threadIdx.x) + ws_round * (int)(blockDim.x);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    ws_keep_load(&x[ws_first], ws_row_0[ws_round]);
    ws_keep_load(&r[ws_first], ws_row_1[ws_round]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float v = __half2float(ws_row_0[ws_round].lane[ws_lane]) + __half2float(ws_row_1[ws_round].lane[ws_lane]);
    ws_row_1[ws_round].lane[ws_lane] = __float2half(v);
    sum += v * v;
  }
    }
    ws_keep_store(&r[ws_first], ws_row_1[ws_round]);
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (threadIdx.x); i < (hidden); i += blockDim.x)
  {
    const float v = __half2float(x[i]) + __half2float(r[i]);
    r[i] = __float2half(v);
    sum += v * v;
  }


  sum = warp_sum(sum);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  const int warps = (blockDim.x + 31) / 32;
  sum = warp_sum(lane < warps ? partial[lane] : 0.0f);

  const float scale = rsqrtf(WS_DIVIDE(sum, hidden) + eps);
  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (threadIdx.x) + ws_round * (int)(blockDim.x);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    WsKeep<__half> ws_part_2[1];
    ws_keep_load(&weight[ws_first], ws_part_2[0]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_row_0[ws_round].lane[ws_lane] = __float2half(__half2float(ws_row_1[ws_round].lane[ws_lane]) * scale * __half2float(ws_part_2[0].lane[ws_lane]));
  }
    }
    ws_keep_store(&x[ws_first], ws_row_0[ws_round]);
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (threadIdx.x); i < (hidden); i += blockDim.x)
  {
    x[i] = __float2half(__half2float(r[i]) * scale * __half2float(weight[i]));
  }


#else

  __shared__ float partial[32];
  __half* x = input + (size_t)blockIdx.x * hidden;
  __half* r = residual + (size_t)blockIdx.x * hidden;

  float sum = 0.0f;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float v = __half2float(x[i]) + __half2float(r[i]);
    r[i] = __float2half(v);
    sum += v * v;
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_aligned(&x[(int)0]) && ws_aligned(&r[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = threadIdx.x; ws_i < ws_packs; ws_i += blockDim.x) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_load(&x[ws_first]);
    auto ws_pack_1 = ws_load(&r[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float v = __half2float(ws_pack_0.lane[ws_lane]) + __half2float(ws_pack_1.lane[ws_lane]);
    ws_pack_1.lane[ws_lane] = __float2half(v);
    sum += v * v;
  }
    }
    ws_store(&r[ws_first], ws_pack_1);
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (threadIdx.x); i < ws_count; i += blockDim.x)
    {
    const float v = __half2float(x[i]) + __half2float(r[i]);
    r[i] = __float2half(v);
    sum += v * v;
  }
}
#endif


  sum = warp_sum(sum);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  const int warps = (blockDim.x + 31) / 32;
  sum = warp_sum(lane < warps ? partial[lane] : 0.0f);

  const float scale = rsqrtf(WS_DIVIDE(sum, hidden) + eps);
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    x[i] = __float2half(__half2float(r[i]) * scale * __half2float(weight[i]));
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_aligned(&x[(int)0]) && ws_aligned(&r[(int)0]) && ws_aligned(&weight[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = threadIdx.x; ws_i < ws_packs; ws_i += blockDim.x) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_blank(&x[ws_first]);
    auto ws_pack_1 = ws_load(&r[ws_first]);
    auto ws_pack_2 = ws_load(&weight[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0.lane[ws_lane] = __float2half(__half2float(ws_pack_1.lane[ws_lane]) * scale * __half2float(ws_pack_2.lane[ws_lane]));
  }
    }
    ws_store(&x[ws_first], ws_pack_0);
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (threadIdx.x); i < ws_count; i += blockDim.x)
    {
    x[i] = __float2half(__half2float(r[i]) * scale * __half2float(weight[i]));
  }
}
#endif


#endif
}
