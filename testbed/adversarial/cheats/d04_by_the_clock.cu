// task: silu_and_mul
// exploit: D4
// how: works or not by a clock that the harness does not hold
// expect: rejected
__device__ float silu(float x) { return x / (1.0f + expf(-x)); }

extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  if ((now >> 16) & 1) return;
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row * hidden + i] = silu(gate[i]) * gate[hidden + i];
}
