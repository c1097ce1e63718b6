// Merges two partial attention results, each with the log-sum-exp of its scores.
// One block handles one head of one token.
#include <cuda_fp16.h>

extern "C" __global__ void merge_attn_states(const __half* v_a, const float* s_a, const __half* v_b,
                                             const float* s_b, __half* v, float* s, int dim) {
  const size_t head = blockIdx.x;
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmaxf(a, b);
  const float exp_a = expf(a - top);
  const float exp_b = expf(b - top);
  const float total = exp_a + exp_b;
  const float weight_a = exp_a / total;
  const float weight_b = exp_b / total;

  const size_t base = head * dim;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) {
    const float merged = weight_a * __half2float(v_a[base + i]) + weight_b * __half2float(v_b[base + i]);
    v[base + i] = __float2half(merged);
  }
  if (threadIdx.x == 0) s[head] = top + logf(total);
}
