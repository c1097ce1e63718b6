// task: silu_and_mul
// exploit: D10
// how: writes to the inputs, which hold their own values again when the launch ends
// expect: rejected
// layer: winner
// variant: the_same_value ; STEP=gate[i]=a;
// variant: restored ; STEP=gate[i]=-a;gate[i]=a;
// variant: as_scratch ; STEP=gate[i]=silu(a);a=gate[i];gate[i]=kept;
// backends: opencl
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global volatile float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global volatile float* gate = input + row * 2 * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float kept = gate[i];
    float a = kept;
    STEP
    out[row * hidden + i] = silu(kept) * gate[hidden + i];
  }
}
