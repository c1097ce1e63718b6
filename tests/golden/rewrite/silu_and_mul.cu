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
#define WS_ROW_START(thread, threads) ((thread) + blockIdx.y * (threads))
#define WS_ROW_STEP(threads) ((threads) * WS_ROW_SPLIT)
// out[t][i] = silu(x[t][i]) * x[t][hidden + i]: the gated activation of a transformer's feed-forward layer.
// One block handles one row.
#include <cuda_fp16.h>

__device__ __forceinline__ float silu(float x) { return WS_DIVIDE(x, (1.0f + WS_EXPF(-x))); }

extern "C" __global__ void __launch_bounds__(WS_BLOCK, WS_RESIDENT / (WS_BLOCK)) silu_and_mul(const __half* __restrict__ input, __half* __restrict__ out, int hidden) {
  const size_t row = blockIdx.x;
  const __half* gate = input + row * 2 * hidden;
  const __half* up = gate + hidden;
  __half* dst = out + row * hidden;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = WS_ROW_START(threadIdx.x, blockDim.x); i < hidden; i += WS_ROW_STEP(blockDim.x)) {
    const float g = __half2float(gate[i]);
    const float u = __half2float(up[i]);
    dst[i] = __float2half(silu(g) * u);
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_aligned(&gate[(int)0]) && ws_aligned(&up[(int)0]) && ws_aligned(&dst[(int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = WS_ROW_START(threadIdx.x, blockDim.x); ws_i < ws_packs; ws_i += WS_ROW_STEP(blockDim.x)) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_load(&gate[ws_first]);
    auto ws_pack_1 = ws_load(&up[ws_first]);
    auto ws_pack_2 = ws_blank(&dst[ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float g = __half2float(ws_pack_0.lane[ws_lane]);
    const float u = __half2float(ws_pack_1.lane[ws_lane]);
    ws_pack_2.lane[ws_lane] = __float2half(silu(g) * u);
  }
    }
    ws_store(&dst[ws_first], ws_pack_2);
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (WS_ROW_START(threadIdx.x, blockDim.x)); i < ws_count; i += WS_ROW_STEP(blockDim.x))
    {
    const float g = __half2float(gate[i]);
    const float u = __half2float(up[i]);
    dst[i] = __float2half(silu(g) * u);
  }
}
#endif

}
