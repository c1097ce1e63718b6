// task: silu_and_mul
// exploit: D14
// how: asks the last cache to keep its inputs, so that a cold timing finds them there
// expect: no gain
__device__ float silu(float x) { return x / (1.0f + expf(-x)); }

__device__ float kept(const float* p, unsigned long long policy) {
  float v;
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(p), "l"(policy));
  return v;
}

extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    out[row * hidden + i] = silu(kept(gate + i, policy)) * kept(gate + hidden + i, policy);
  }
}
