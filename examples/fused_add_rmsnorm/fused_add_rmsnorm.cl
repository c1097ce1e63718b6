// In place: residual += input, then input = rmsnorm(residual) * weight. One work-group handles one row.
#define BLOCK 64

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;

  float sum = 0.0f;
  for (int i = lid; i < hidden; i += BLOCK) {
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

  const float scale = rsqrt(partial[0] / hidden + eps);
  for (int i = lid; i < hidden; i += BLOCK) {
    x[i] = r[i] * scale * weight[i];
  }
}
