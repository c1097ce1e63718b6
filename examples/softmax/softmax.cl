// Softmax of every row; half is storage only. One work-group handles one row.
#define BLOCK 64

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;

  float top = -INFINITY;
  for (int i = lid; i < columns; i += BLOCK) top = fmax(top, vload_half(i, x));
  scratch[lid] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] = fmax(scratch[lid], scratch[lid + stride]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  top = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);

  float sum = 0.0f;
  for (int i = lid; i < columns; i += BLOCK) sum += exp(vload_half(i, x) - top);
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
    if (lid < stride) scratch[lid] += scratch[lid + stride];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = scratch[0];

  for (int i = lid; i < columns; i += BLOCK) {
    vstore_half(exp(vload_half(i, x) - top) / sum, i, y);
  }
}
