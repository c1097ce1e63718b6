#if WS_FAST_MATH
#define WS_EXPF(x) __expf(x)
#define WS_LOGF(x) __logf(x)
#define WS_DIVIDE(a, b) __fdividef(a, b)
#else
#define WS_EXPF(x) expf(x)
#define WS_LOGF(x) logf(x)
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
// Merges two partial attention results, each with the log-sum-exp of its scores.
// One block handles one head of one token.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(WS_BLOCK * WS_ROWS, WS_RESIDENT / (WS_BLOCK * WS_ROWS)) merge_attn_states(const __half* __restrict__ v_a, const float* __restrict__ s_a, const __half* __restrict__ v_b,
                                             const float* __restrict__ s_b, __half* __restrict__ v, float* __restrict__ s, int dim) {
  const size_t head = (blockIdx.x * WS_ROWS + threadIdx.y);
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmaxf(a, b);
  const float exp_a = WS_EXPF(a - top);
  const float exp_b = WS_EXPF(b - top);
  const float total = exp_a + exp_b;
  const float weight_a = WS_DIVIDE(exp_a, total);
  const float weight_b = WS_DIVIDE(exp_b, total);

  const size_t base = head * dim;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = WS_ROW_START(threadIdx.x, blockDim.x); i < dim; i += WS_ROW_STEP(blockDim.x)) {
    const float merged = weight_a * __half2float(v_a[base + i]) + weight_b * __half2float(v_b[base + i]);
    v[base + i] = __float2half(merged);
  }
#else
{
  const int ws_count = dim;
  const int ws_packs = ws_aligned(&v_a[base + (int)0]) && ws_aligned(&v_b[base + (int)0]) && ws_aligned(&v[base + (int)0]) ? ws_count / WS_VEC : 0;
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int ws_i = WS_ROW_START(threadIdx.x, blockDim.x); ws_i < ws_packs; ws_i += WS_ROW_STEP(blockDim.x)) {
    const int ws_first = ws_i * WS_VEC;
    auto ws_pack_0 = ws_load(&v_a[base + ws_first]);
    auto ws_pack_1 = ws_load(&v_b[base + ws_first]);
    auto ws_pack_2 = ws_blank(&v[base + ws_first]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float merged = weight_a * __half2float(ws_pack_0.lane[ws_lane]) + weight_b * __half2float(ws_pack_1.lane[ws_lane]);
    ws_pack_2.lane[ws_lane] = __float2half(merged);
  }
    }
    ws_store(&v[base + ws_first], ws_pack_2);
  }
  
#if WS_UNROLL > 0
#pragma unroll ws_unroll
#endif
for (int i = ws_packs * WS_VEC + (WS_ROW_START(threadIdx.x, blockDim.x)); i < ws_count; i += WS_ROW_STEP(blockDim.x))
    {
    const float merged = weight_a * __half2float(v_a[base + i]) + weight_b * __half2float(v_b[base + i]);
    v[base + i] = __float2half(merged);
  }
}
#endif

  if (threadIdx.x == 0) s[head] = top + WS_LOGF(total);
}
