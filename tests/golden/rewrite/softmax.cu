#if WS_FAST_MATH
#define WS_EXPF(x) __expf(x)
#define WS_DIVIDE(a, b) __fdividef(a, b)
#else
#define WS_EXPF(x) expf(x)
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
// Softmax of every row. One block handles one row.
#include <cuda_bf16.h>

__device__ float block_reduce(float value, float* scratch, bool take_max) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, offset);
    value = take_max ? fmaxf(value, other) : value + other;
  }
  const int warps = (blockDim.x + 31) / 32;
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (int w = 1; w < warps; ++w) value = take_max ? fmaxf(value, scratch[w]) : value + scratch[w];
  __syncthreads();
  return value;
}

extern "C" __global__ void __launch_bounds__(WS_BLOCK, WS_RESIDENT / (WS_BLOCK)) softmax(const __nv_bfloat16* __restrict__ input, __nv_bfloat16* out, int columns) {
#if WS_KEEP > 0

  __shared__ float scratch[32];
  const __nv_bfloat16* x = input + (size_t)blockIdx.x * columns;
  __nv_bfloat16* y = out + (size_t)blockIdx.x * columns;

  float top = __bfloat162float(x[0]);
  
const int ws_kept = ((int)(columns)) / WS_KEEP_PACK < WS_KEEP * (int)(blockDim.x) ? ((int)(columns)) / WS_KEEP_PACK : WS_KEEP * (int)(blockDim.x);
WsKeep<__nv_bfloat16> ws_row_0[WS_KEEP];
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (threadIdx.x) + ws_round * (int)(blockDim.x);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    ws_keep_load(&x[ws_first], ws_row_0[ws_round]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      top = fmaxf(top, __bfloat162float(ws_row_0[ws_round].lane[ws_lane]));
    }
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (threadIdx.x); i < (columns); i += blockDim.x)
  top = fmaxf(top, __bfloat162float(x[i]));

  top = block_reduce(top, scratch, true);

  float sum = 0.0f;
  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (threadIdx.x) + ws_round * (int)(blockDim.x);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      sum += WS_EXPF(__bfloat162float(ws_row_0[ws_round].lane[ws_lane]) - top);
    }
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (threadIdx.x); i < (columns); i += blockDim.x)
  sum += WS_EXPF(__bfloat162float(x[i]) - top);

  sum = block_reduce(sum, scratch, false);

  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (threadIdx.x) + ws_round * (int)(blockDim.x);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    WsKeep<__nv_bfloat16> ws_part_0[1];
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_part_0[0].lane[ws_lane] = __float2bfloat16(WS_DIVIDE(WS_EXPF(__bfloat162float(ws_row_0[ws_round].lane[ws_lane]) - top), sum));
  }
    }
    ws_keep_store(&y[ws_first], ws_part_0[0]);
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (threadIdx.x); i < (columns); i += blockDim.x)
  {
    y[i] = __float2bfloat16(WS_DIVIDE(WS_EXPF(__bfloat162float(x[i]) - top), sum));
  }


#else

  __shared__ float scratch[32];
  const __nv_bfloat16* x = input + (size_t)blockIdx.x * columns;
  __nv_bfloat16* y = out + (size_t)blockIdx.x * columns;

  float top = __bfloat162float(x[0]);
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = threadIdx.x; i < columns; i += blockDim.x) top = fmaxf(top, __bfloat162float(x[i]));
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_aligned(&x[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = threadIdx.x; ws_i < ws_packs; ws_i += blockDim.x) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_load(&x[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      top = fmaxf(top, __bfloat162float(ws_pack_0.lane[ws_lane]));
    }
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (threadIdx.x); i < ws_count; i += blockDim.x)
    top = fmaxf(top, __bfloat162float(x[i]));
}
#endif

  top = block_reduce(top, scratch, true);

  float sum = 0.0f;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += WS_EXPF(__bfloat162float(x[i]) - top);
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_aligned(&x[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = threadIdx.x; ws_i < ws_packs; ws_i += blockDim.x) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_load(&x[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      sum += WS_EXPF(__bfloat162float(ws_pack_0.lane[ws_lane]) - top);
    }
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (threadIdx.x); i < ws_count; i += blockDim.x)
    sum += WS_EXPF(__bfloat162float(x[i]) - top);
}
#endif

  sum = block_reduce(sum, scratch, false);

  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    y[i] = __float2bfloat16(WS_DIVIDE(WS_EXPF(__bfloat162float(x[i]) - top), sum));
  }
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_aligned(&y[(int)0]) && ws_aligned(&x[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = threadIdx.x; ws_i < ws_packs; ws_i += blockDim.x) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_blank(&y[ws_first]);
    auto ws_pack_1 = ws_load(&x[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0.lane[ws_lane] = __float2bfloat16(WS_DIVIDE(WS_EXPF(__bfloat162float(ws_pack_1.lane[ws_lane]) - top), sum));
  }
    }
    ws_store(&y[ws_first], ws_pack_0);
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (threadIdx.x); i < ws_count; i += blockDim.x)
    {
    y[i] = __float2bfloat16(WS_DIVIDE(WS_EXPF(__bfloat162float(x[i]) - top), sum));
  }
}
#endif


#endif
}
