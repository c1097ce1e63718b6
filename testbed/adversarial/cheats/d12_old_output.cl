// task: silu_and_mul
// exploit: D12
// how: the last bit of a result depends on what was in the output before, which nothing has set
// expect: rejected
// layer: correctness
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const int before = as_int(dst[i]) & 1;
    dst[i] = as_float(as_int(silu(gate[i]) * gate[hidden + i]) ^ before);
  }
}
