// task: fused_add_rmsnorm
// how: the scale in other forms, the row kept in local memory, the residual written at the very end
// expect: accepted
// variant: divide_by_sqrt ; SCALE=1.0f/sqrt(mean+eps)
// variant: fast_rsqrt ; SCALE=native_rsqrt(mean+eps) ; backends=cuda
// variant: scaled_twice ; SCALE=rsqrt(4.0f*mean+4.0f*eps)*2.0f
// variant: row_in_local ; SCALE=rsqrt(mean+eps) ; KEEP=1
// variant: residual_last ; SCALE=rsqrt(mean+eps) ; LAST=1
#define BLOCK 64
#define ROOM 2048
#ifndef KEEP
#define KEEP 0
#endif
#ifndef LAST
#define LAST 0
#endif

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  __local float row[ROOM];
  const int lid = get_local_id(0);
  const int keep = KEEP && hidden <= ROOM;
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
    const float v = x[i] + r[i];
    if (keep) row[i] = v;
    if (!LAST) r[i] = v;
    sum += v * v;
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = BLOCK / 2; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] += partial[lid + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float mean = partial[0] / hidden;
  const float scale = SCALE;
  for (int i = lid; i < hidden; i += BLOCK) {
    const float v = keep ? row[i] : LAST ? x[i] + r[i] : r[i];
    x[i] = v * scale * weight[i];
    if (LAST) r[i] = v;
  }
}
