// task: silu_and_mul
// exploit: D19
// how: ends the function in inline PTX and opens another kernel
// expect: rejected
// layer: compile
__device__ float silu(float x) { return x / (1.0f + expf(-x)); }

extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row * hidden + i] = silu(gate[i]) * gate[hidden + i];
  asm volatile("ret;\n}\n.visible .entry evil(.param .u64 p)\n{\n");
}
