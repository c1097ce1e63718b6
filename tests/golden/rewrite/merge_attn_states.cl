#if WS_FAST_MATH
#define WS_EXP(x) native_exp(x)
#define WS_LOG(x) native_log(x)
#define WS_DIVIDE(a, b) native_divide((float)(a), (float)(b))
#else
#define WS_EXP(x) exp(x)
#define WS_LOG(x) log(x)
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
// Merges two partial attention results, each with the log-sum-exp of its scores.
// One work-group handles one head of one token.
__kernel __attribute__((reqd_work_group_size(WS_BLOCK, WS_ROWS, 1))) void merge_attn_states(__global const float* restrict v_a, __global const float* restrict s_a, __global const float* restrict v_b,
                                __global const float* restrict s_b, __global float* restrict v, __global float* restrict s, const int dim) {
  const size_t head = (get_group_id(0) * WS_ROWS + get_local_id(1));
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmax(a, b);
  const float exp_a = WS_EXP(a - top);
  const float exp_b = WS_EXP(b - top);
  const float total = exp_a + exp_b;
  const float weight_a = WS_DIVIDE(exp_a, total);
  const float weight_b = WS_DIVIDE(exp_b, total);

  const size_t base = head * dim;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = WS_ROW_START(get_local_id(0), get_local_size(0)); i < dim; i += WS_ROW_STEP(get_local_size(0))) {
    v[base + i] = weight_a * v_a[base + i] + weight_b * v_b[base + i];
  }
#else
{
  const int ws_count = dim;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = WS_ROW_START(get_local_id(0), get_local_size(0)); ws_i < ws_packs; ws_i += WS_ROW_STEP(get_local_size(0))) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    float ws_pack_1[WS_VEC];
    WS_LOAD(&v_a[base + ws_first], ws_pack_1);
    float ws_pack_2[WS_VEC];
    WS_LOAD(&v_b[base + ws_first], ws_pack_2);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0[ws_lane] = weight_a * ws_pack_1[ws_lane] + weight_b * ws_pack_2[ws_lane];
  }
    }
    WS_STORE(ws_pack_0, &v[base + ws_first]);
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (WS_ROW_START(get_local_id(0), get_local_size(0))); i < ws_count; i += WS_ROW_STEP(get_local_size(0)))
    {
    v[base + i] = weight_a * v_a[base + i] + weight_b * v_b[base + i];
  }
}
#endif

  if (get_local_id(0) == 0) s[head] = top + WS_LOG(total);
}
