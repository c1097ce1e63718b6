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
// Softmax of every row; half is storage only. One work-group handles one row.
#define BLOCK WS_BLOCK

__kernel __attribute__((reqd_work_group_size(WS_BLOCK, 1, 1))) void softmax(__global const half* restrict input, __global half* out, const int columns) {
#if WS_KEEP > 0

  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;

  float top = -INFINITY;
  
const int ws_kept = ((int)(columns)) / WS_KEEP_PACK < WS_KEEP * (int)(BLOCK) ? ((int)(columns)) / WS_KEEP_PACK : WS_KEEP * (int)(BLOCK);
float ws_row_0[WS_KEEP * WS_KEEP_PACK];
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (lid) + ws_round * (int)(BLOCK);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    WS_KEEP_LOAD_HALF((x) + (ws_first), &ws_row_0[ws_round * WS_KEEP_PACK]);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      top = fmax(top, ws_row_0[ws_round * WS_KEEP_PACK + ws_lane]);
    }
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (lid); i < (columns); i += BLOCK)
  top = fmax(top, vload_half(i, x));

  scratch[lid] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] = fmax(scratch[lid], scratch[lid + stride]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  top = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);

  float sum = 0.0f;
  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (lid) + ws_round * (int)(BLOCK);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      sum += WS_EXP(ws_row_0[ws_round * WS_KEEP_PACK + ws_lane] - top);
    }
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (lid); i < (columns); i += BLOCK)
  sum += WS_EXP(vload_half(i, x) - top);

  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] += scratch[lid + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = scratch[0];

  
#pragma unroll
for (int ws_round = 0; ws_round < WS_KEEP; ++ws_round) {
  const int ws_pack = (lid) + ws_round * (int)(BLOCK);
  if (ws_pack < ws_kept) {
    const int ws_first = ws_pack * WS_KEEP_PACK;
    float ws_part_0[1 * WS_KEEP_PACK];
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_KEEP_PACK; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_part_0[0 * WS_KEEP_PACK + ws_lane] = WS_DIVIDE(WS_EXP(ws_row_0[ws_round * WS_KEEP_PACK + ws_lane] - top), sum);
  }
    }
    WS_KEEP_STORE_HALF(&ws_part_0[0 * WS_KEEP_PACK], (y) + (ws_first));
  }
}
for (int i = ws_kept * WS_KEEP_PACK + (lid); i < (columns); i += BLOCK)
  {
    vstore_half(WS_DIVIDE(WS_EXP(vload_half(i, x) - top), sum), i, y);
  }


#else

  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;

  float top = -INFINITY;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = lid; i < columns; i += BLOCK) top = fmax(top, vload_half(i, x));
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = lid; ws_i < ws_packs; ws_i += BLOCK) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    WS_LOAD_HALF((x) + (ws_first), ws_pack_0);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      top = fmax(top, ws_pack_0[ws_lane]);
    }
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (lid); i < ws_count; i += BLOCK)
    top = fmax(top, vload_half(i, x));
}
#endif

  scratch[lid] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] = fmax(scratch[lid], scratch[lid + stride]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  top = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);

  float sum = 0.0f;
  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = lid; i < columns; i += BLOCK) sum += WS_EXP(vload_half(i, x) - top);
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = lid; ws_i < ws_packs; ws_i += BLOCK) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    WS_LOAD_HALF((x) + (ws_first), ws_pack_0);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      sum += WS_EXP(ws_pack_0[ws_lane] - top);
    }
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (lid); i < ws_count; i += BLOCK)
    sum += WS_EXP(vload_half(i, x) - top);
}
#endif

  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] += scratch[lid + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = scratch[0];

  
#if WS_VEC == 1

#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = lid; i < columns; i += BLOCK) {
    vstore_half(WS_DIVIDE(WS_EXP(vload_half(i, x) - top), sum), i, y);
  }
#else
{
  const int ws_count = columns;
  const int ws_packs = ws_count / WS_VEC;
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int ws_i = lid; ws_i < ws_packs; ws_i += BLOCK) {
    const int ws_first = ws_i * WS_VEC;
    float ws_pack_0[WS_VEC];
    float ws_pack_1[WS_VEC];
    WS_LOAD_HALF((x) + (ws_first), ws_pack_1);
#pragma unroll
    for (int ws_lane = 0; ws_lane < WS_VEC; ++ws_lane) {
      const int i = ws_first + ws_lane;
      {
    ws_pack_0[ws_lane] = WS_DIVIDE(WS_EXP(ws_pack_1[ws_lane] - top), sum);
  }
    }
    WS_STORE_HALF(ws_pack_0, (y) + (ws_first));
  }
  
#if WS_UNROLL > 0
#pragma unroll WS_UNROLL
#endif
for (int i = ws_packs * WS_VEC + (lid); i < ws_count; i += BLOCK)
    {
    vstore_half(WS_DIVIDE(WS_EXP(vload_half(i, x) - top), sum), i, y);
  }
}
#endif


#endif
}
