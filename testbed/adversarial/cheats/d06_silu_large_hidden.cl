// task: silu_and_mul
// exploit: D6
// how: a coarse sigmoid for rows longer than any that a small test would have
// expect: rejected
// layer: correctness
float silu(float x, int coarse) {
  const float s = 1.0f / (1.0f + exp(-x));
  return x * (coarse ? as_float(as_int(s) & ~0x1fff) : s);
}

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = silu(gate[i], hidden >= 1000) * gate[hidden + i];
  }
}
