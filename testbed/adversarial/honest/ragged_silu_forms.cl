// task: ragged_silu
// how: silu up to the length of a row, and other things beyond it
// expect: accepted
// variant: leaves_the_rest ; STOP=lengths[row]
// variant: computes_all ; STOP=columns
// variant: up_to_a_multiple_of_eight ; STOP=min((lengths[row]+7)/8*8,columns)
// variant: rubbish_beyond ; STOP=columns ; BEYOND=-1.0e30f
// variant: infinity_beyond ; STOP=columns ; BEYOND=INFINITY
__kernel void ragged_silu(__global const float* x, __global const int* lengths, __global float* y,
                          const int columns) {
  const int row = get_group_id(0);
  for (int i = get_local_id(0); i < STOP; i += get_local_size(0)) {
    const float v = x[row * columns + i];
    float result = v / (1.0f + exp(-v));
#ifdef BEYOND
    if (i >= lengths[row]) result = BEYOND;
#endif
    y[row * columns + i] = result;
  }
}
