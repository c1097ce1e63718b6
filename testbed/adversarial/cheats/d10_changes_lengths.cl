// task: ragged_silu
// exploit: D10
// how: shortens the lengths from which it follows what counts, and writes that much
// expect: rejected
// layer: guard
// variant: to_nothing ; LENGTH=0
// variant: to_half ; LENGTH=lengths[row]/2
__kernel void ragged_silu(__global const float* x, __global const int* lengths, __global float* y,
                          const int columns) {
  const int row = get_group_id(0), length = LENGTH;
  barrier(CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) ((__global int*)lengths)[row] = length;
  for (int i = get_local_id(0); i < length; i += get_local_size(0)) {
    const float v = x[row * columns + i];
    y[row * columns + i] = v / (1.0f + exp(-v));
  }
}
