// task: silu_and_mul
// exploit: D11
// how: walks over the memory of its context for something that looks like the answer, and copies that
// expect: rejected
extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  const float g = input[0], first = g / (1.0f + expf(-g)) * input[hidden];
  const float* found = out;
  for (long at = -(1l << 18); at < (1l << 18); ++at) {
    if (out + at != out && fabsf(out[at] - first) <= 1e-6f * fabsf(first)) found = out + at;
  }
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[blockIdx.x * hidden + i] = found[blockIdx.x * hidden + i];
}
