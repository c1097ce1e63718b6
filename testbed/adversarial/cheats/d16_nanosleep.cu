// task: silu_and_mul
// exploit: D16
// how: sleeps in its first launches, so that an adaptive protocol takes few samples
// expect: no gain
__device__ int launches;
__device__ float silu(float x) { return x / (1.0f + expf(-x)); }

extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  const size_t row = blockIdx.x;
  if (row == 0 && threadIdx.x == 0 && atomicAdd(&launches, 1) < 3) {
    for (int i = 0; i < 50; ++i) __nanosleep(1000000);
  }
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row * hidden + i] = silu(gate[i]) * gate[hidden + i];
}
