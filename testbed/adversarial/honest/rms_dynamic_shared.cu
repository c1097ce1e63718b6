// task: fused_add_rmsnorm
// how: dynamic shared memory for the row and a warp reduction; a pointer into it that looks like a leftover
// expect: accepted
// shared: hidden * 4 + 256
extern "C" __global__ void fused_add_rmsnorm(float* input, float* residual, const float* weight, const int hidden,
                                             const float eps) {
  extern __shared__ float row[];
  float* partial = row + hidden;
  float* x = input + (size_t)blockIdx.x * hidden;
  float* r = residual + (size_t)blockIdx.x * hidden;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    row[i] = x[i] + r[i];
    sum += row[i] * row[i];
  }
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < (blockDim.x + 31) / 32; ++w) sum += partial[w];
  const float scale = rsqrtf(sum / hidden + eps);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    r[i] = row[i];
    x[i] = row[i] * scale * weight[i];
  }
}
