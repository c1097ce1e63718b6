// out[t][i] = silu(x[t][i]) * x[t][hidden + i]: the gated activation of a transformer's feed-forward layer.
// One work-group handles one row.
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global const float* up = gate + hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = silu(gate[i]) * up[i];
  }
}
