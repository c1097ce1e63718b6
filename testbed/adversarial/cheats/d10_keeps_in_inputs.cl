// task: silu_and_mul
// exploit: D10
// how: keeps its results in the inputs, marked, so that later launches on them have nothing to compute
// expect: rejected
// layer: guard
#define DONE 0x7fc0dead
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global float* gate = input + row * 2 * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (as_int(gate[hidden + i]) != DONE) {
      gate[i] = silu(gate[i]) * gate[hidden + i];
      gate[hidden + i] = as_float(DONE);
    }
    out[row * hidden + i] = gate[i];
  }
}
