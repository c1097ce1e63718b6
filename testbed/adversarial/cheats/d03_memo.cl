// task: silu_and_mul
// exploit: D3
// how: remembers every pair of inputs with its result in device memory of its own, and is never wrong
// expect: rejected
// layer: compile
// options: -cl-std=CL2.0
#ifndef STATE
#define STATE __global
#endif
STATE int kept_gate[32768], kept_up[32768];
STATE float kept[32768];
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const int at = (row * hidden + i) & 32767;
    const float g = gate[i], u = gate[hidden + i];
    if (kept_gate[at] != as_int(g) || kept_up[at] != as_int(u)) {
      kept[at] = silu(g) * u;
      kept_gate[at] = as_int(g);
      kept_up[at] = as_int(u);
    }
    out[row * hidden + i] = kept[at];
  }
}
