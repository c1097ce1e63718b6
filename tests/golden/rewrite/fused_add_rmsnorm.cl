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
#if WS_KEEP > 0
#if WS_KEEP_PACK == 1
#define WS_KEEP_LOAD(p, lanes) *(lanes) = *(p)
#define WS_KEEP_STORE(lanes, p) *(p) = *(lanes)
#define WS_KEEP_LOAD_HALF(p, lanes) *(lanes) = vload_half(0, p)
#define WS_KEEP_STORE_HALF(lanes, p) vstore_half(*(lanes), 0, p)
#else
#define WS_KEEP_JOIN_(a, b) a##b
#define WS_KEEP_JOIN(a, b) WS_KEEP_JOIN_(a, b)
#define WS_KEEP_VLOAD WS_KEEP_JOIN(vload, WS_KEEP_PACK)
#define WS_KEEP_VSTORE WS_KEEP_JOIN(vstore, WS_KEEP_PACK)
#define WS_KEEP_LOAD(p, lanes) WS_KEEP_VSTORE(WS_KEEP_VLOAD(0, p), 0, lanes)
#define WS_KEEP_STORE(lanes, p) WS_KEEP_VSTORE(WS_KEEP_VLOAD(0, lanes), 0, p)
#define WS_KEEP_LOAD_HALF(p, lanes) WS_KEEP_VSTORE(WS_KEEP_JOIN(vload_half, WS_KEEP_PACK)(0, p), 0, lanes)
#define WS_KEEP_STORE_HALF(lanes, p) WS_KEEP_JOIN(vstore_half, WS_KEEP_PACK)(WS_KEEP_VLOAD(0, lanes), 0, p)
#endif
#endif
// In place: residual += input, then input = rmsnorm(residual) * weight. One work-group handles one row.
#define BLOCK WS_BLOCK

__kernel __attribute__((reqd_work_group_size(WS_BLOCK, 1, 1))) void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* restrict weight,
                                const int hidden, const float eps) {
#if WS_KEEP > 0

  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;

  float sum = 0.0f;
  
const int ws_kept = ((int)(hidden)) / WS_KEEP_PACK < WS_KEEP * (int)(BLOCK) ? ((int)(hidden)) / WS_KEEP_PACK : WS_KEEP * (int)(BLOCK);
float ws_row_0[WS_KEEP * WS_KEEP_PACK];
float ws_row_1[WS_KEEP * WS_KEEP_PACK];
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (lid) + ws_round * (int)(BLOCK);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    WS_KEEP_LOAD(&x[ws_first], &ws_row_0[ws_round * WS_KEEP_PACK]);
    WS_KEEP_LOAD(&r[ws_first], &ws_row_1[ws_round * WS_KEEP_PACK]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    const float v = ws_row_0[ws_round * WS_KEEP_PACK + ws_lane] + ws_row_1[ws_round * WS_KEEP_PACK + ws_lane];
    ws_row_1[ws_round * WS_KEEP_PACK + ws_lane] = v;
    sum += v * v;
  }
    }
    WS_KEEP_STORE(&ws_row_1[ws_round * WS_KEEP_PACK], &r[ws_first]);
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (lid); i < (hidden); i += BLOCK)
  {
    const float v = x[i] + r[i];
    r[i] = v;
    sum += v * v;
  }


  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] += partial[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const float scale = WS_RSQRT(WS_DIVIDE(partial[0], hidden) + eps);
  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (lid) + ws_round * (int)(BLOCK);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    float ws_part_2[1 * WS_KEEP_PACK];
    WS_KEEP_LOAD(&weight[ws_first], &ws_part_2[0 * WS_KEEP_PACK]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_row_0[ws_round * WS_KEEP_PACK + ws_lane] = ws_row_1[ws_round * WS_KEEP_PACK + ws_lane] * scale * ws_part_2[0 * WS_KEEP_PACK + ws_lane];
  }
    }
    WS_KEEP_STORE(&ws_row_0[ws_round * WS_KEEP_PACK], &x[ws_first]);
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (lid); i < (hidden); i += BLOCK)
  {
    x[i] = r[i] * scale * weight[i];
  }


#else

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


#endif
}
