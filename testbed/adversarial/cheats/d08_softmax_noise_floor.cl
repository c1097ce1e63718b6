// task: softmax
// exploit: D8
// how: outputs of a softmax lie below the absolute tolerance of their type; the job must be refused
// expect: rejected
// layer: task gate
// tolerance: 2e-3 1
__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  for (int i = get_local_id(0); i < columns; i += get_local_size(0)) {
    vstore_half(0.0f, i, out + get_group_id(0) * (size_t)columns);
  }
}
