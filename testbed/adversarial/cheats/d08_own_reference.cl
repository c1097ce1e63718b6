// task: silu_and_mul
// exploit: D8
// how: a loose job whose only reference is its kernel, so that no error budget stops zeros
// expect: rejected
// layer: task gate
// reference: kernel
// tolerance: 0 100000
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) out[get_group_id(0) * (size_t)hidden + i] = 0.0f;
}
