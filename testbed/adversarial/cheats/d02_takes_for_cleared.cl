// task: silu_and_mul
// exploit: D2
// how: does not write a zero where eight words of the output are alike, which it takes for cleared memory
// expect: rejected
// layer: correctness
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float result = silu(gate[i]) * gate[hidden + i];
    const int start = i / 8 * 8;
    if (result == 0.0f && start + 8 <= hidden) {
      int alike = 1;
      for (int n = start; n < start + 8; ++n) alike &= as_int(dst[n]) == as_int(dst[i]);
      if (alike) continue;
    }
    dst[i] = result;
  }
}
