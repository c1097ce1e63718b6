// task: silu_and_mul
// how: streaming loads and stores, a prefetch and a short sleep: hints that change no value
// expect: accepted
__device__ const float one[1] = {1.0f};

extern "C" __global__ void silu_and_mul(const float* __restrict__ input, float* __restrict__ out, const int hidden) {
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(gate));
  if (threadIdx.x == 0) __nanosleep(20);
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
    const float g = __ldcs(gate + i), u = __ldg(gate + hidden + i);
    __stcs(out + row * hidden + i, g / (one[0] + expf(-g)) * u);
  }
}
