#if WS_FAST_MATH
#define WS_RSQRT(x) native_rsqrt(x)
#define WS_DIVIDE(a, b) native_divide((float)(a), (float)(b))
#else
#define WS_RSQRT(x) rsqrt(x)
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
// In place: residual += input, then input = rmsnorm(residual) * weight. One work-group handles one row.
#define BLOCK WS_BLOCK

__kernel __attribute__((reqd_work_group_size(WS_BLOCK, 1, 1))) void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* restrict weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;

  float sum = 0.0f;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = lid; i < hidden; i += BLOCK) {
    const float v = x[i] + r[i];
    r[i] = v;
    sum += v * v;
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = lid; ws_i < ws_packs; ws_i += BLOCK) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    WS_LOAD(&x[ws_first], ws_pack_0);
    float ws_pack_1[WS_VEC];
    WS_LOAD(&r[ws_first], ws_pack_1);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float v = ws_pack_0[ws_lane] + ws_pack_1[ws_lane];
    ws_pack_1[ws_lane] = v;
    sum += v * v;
  }
    }
    WS_STORE(ws_pack_1, &r[ws_first]);
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (lid); i < ws_count; i += BLOCK)
    {
    const float v = x[i] + r[i];
    r[i] = v;
    sum += v * v;
  }
}
#endif


  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] += partial[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const float scale = WS_RSQRT(WS_DIVIDE(partial[0], hidden) + eps);
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = lid; i < hidden; i += BLOCK) {
    x[i] = r[i] * scale * weight[i];
  }
#else
{
  const int ws_count = hidden;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = lid; ws_i < ws_packs; ws_i += BLOCK) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    float ws_pack_1[WS_VEC];
    WS_LOAD(&r[ws_first], ws_pack_1);
    float ws_pack_2[WS_VEC];
    WS_LOAD(&weight[ws_first], ws_pack_2);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0[ws_lane] = ws_pack_1[ws_lane] * scale * ws_pack_2[ws_lane];
  }
    }
    WS_STORE(ws_pack_0, &x[ws_first]);
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (lid); i < ws_count; i += BLOCK)
    {
    x[i] = r[i] * scale * weight[i];
  }
}
#endif

}
