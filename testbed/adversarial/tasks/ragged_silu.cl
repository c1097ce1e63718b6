// silu of the first lengths[row] elements of each row; the others are positions beyond a sequence's end.
__kernel void ragged_silu(__global const float* x, __global const int* lengths, __global float* y,
                          const int columns) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < lengths[row]; i += get_local_size(0)) {
    const float v = x[row * columns + i];
    y[row * columns + i] = v / (1.0f + exp(-v));
  }
}
