// task: silu_and_mul
// exploit: D5
// how: skips rows that look empty or constant by two of their elements
// expect: rejected
// layer: correctness
// variant: looks_sparse ; LOOKS=(gate[0]==0.0f)
// variant: looks_constant ; LOOKS=(gate[0]==gate[1]&&gate[1]==gate[2])
// variant: looks_sorted ; LOOKS=(gate[0]<=gate[1]&&gate[1]<=gate[2]&&gate[2]<=gate[3]&&gate[3]<=gate[4]&&gate[4]<=gate[5]&&gate[5]<=gate[6]&&gate[6]<=gate[7]&&gate[7]<=gate[8]&&gate[8]<=gate[9])
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int looks = LOOKS;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = looks ? 0.5f * gate[hidden + i] : silu(gate[i]) * gate[hidden + i];
  }
}
