#if WS_FAST_MATH
#define WS_EXP(x) native_exp(x)
#define WS_DIVIDE(a, b) native_divide((float)(a), (float)(b))
#else
#define WS_EXP(x) exp(x)
#define WS_DIVIDE(a, b) ((a) / (b))
#endif
#if WS_VEC > 1
#define WS_JOIN_(a, b) a##b
#define WS_JOIN(a, b) WS_JOIN_(a, b)
#define WS_LOAD(p, lanes) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, p), 0, lanes)
#define WS_STORE(lanes, p) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, lanes), 0, p)
#define WS_LOAD_HALF(p, lanes) WS_JOIN(vstore, WS_VEC)(WS_JOIN(vload_half, WS_VEC)(0, p), 0, lanes)
#define WS_STORE_HALF(lanes, p) WS_JOIN(vstore_half, WS_VEC)(WS_JOIN(vload, WS_VEC)(0, lanes), 0, p)
#endif
#define WS_ROW_START(thread, threads) ((thread) + get_group_id(1) * (threads))
#define WS_ROW_STEP(threads) ((threads) * WS_ROW_SPLIT)
// out[t][i] = silu(x[t][i]) * x[t][hidden + i]: the gated activation of a transformer's feed-forward layer.
// One work-group handles one row.
float silu(float x) { return WS_DIVIDE(x, (1.0f + WS_EXP(-x))); }

__kernel __attribute__((reqd_work_group_size(WS_BLOCK, 1, 1))) void silu_and_mul(__global const float* restrict input, __global float* restrict out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global const float* up = gate + hidden;
  __global float* dst = out + row * hidden;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = WS_ROW_START(get_local_id(0), get_local_size(0)); i < hidden; i += WS_ROW_STEP(get_local_size(0))) {
    dst[i] = silu(gate[i]) * up[i];
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = WS_ROW_START(get_local_id(0), get_local_size(0)); ws_i < ws_packs; ws_i += WS_ROW_STEP(get_local_size(0))) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    float ws_pack_1[WS_VEC];
    WS_LOAD(&gate[ws_first], ws_pack_1);
    float ws_pack_2[WS_VEC];
    WS_LOAD(&up[ws_first], ws_pack_2);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0[ws_lane] = silu(ws_pack_1[ws_lane]) * ws_pack_2[ws_lane];
  }
    }
    WS_STORE(ws_pack_0, &dst[ws_first]);
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (WS_ROW_START(get_local_id(0), get_local_size(0))); i < ws_count; i += WS_ROW_STEP(get_local_size(0)))
    {
    dst[i] = silu(gate[i]) * up[i];
  }
}
#endif

}
