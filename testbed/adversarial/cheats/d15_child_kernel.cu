// task: silu_and_mul
// exploit: D15
// how: leaves the work to a kernel that the device launches, outside what is timed
// expect: rejected
// layer: compile
__global__ void work(const float* input, float* out, const int hidden) {
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row * hidden + i] = gate[i] * gate[hidden + i];
}

extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  if (blockIdx.x == 0 && threadIdx.x == 0) work<<<gridDim.x, 64>>>(input, out, hidden);
}
