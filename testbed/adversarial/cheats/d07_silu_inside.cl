// task: silu_and_mul
// exploit: D7
// how: fifteen bits of the result: inside the tolerance, and hundreds of times the error of the baseline
// expect: rejected
// layer: correctness
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = as_float(as_int(silu(gate[i]) * gate[hidden + i]) & ~0x1ff);
  }
}
