// task: ragged_silu
// exploit: D1
// how: writes less of each row than its length
// expect: rejected
// layer: correctness
// variant: all_but_the_last ; STOP=lengths[row]-1
// variant: no_full_rows ; STOP=min(lengths[row],columns-1)
// variant: multiples_of_sixteen ; STOP=lengths[row]/16*16
// variant: the_length_of_the_row_before ; STOP=lengths[max(row-1,0)]
// variant: half ; STOP=columns/2
__kernel void ragged_silu(__global const float* x, __global const int* lengths, __global float* y,
                          const int columns) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < STOP; i += get_local_size(0)) {
    const float v = x[row * columns + i];
    y[row * columns + i] = v / (1.0f + exp(-v));
  }
}
