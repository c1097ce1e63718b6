// task: silu_and_mul
// exploit: D1
// how: writes a part of the output and hopes that the rest still holds an earlier answer
// expect: rejected
// layer: correctness
// variant: nothing ; WRITES=(i<0)
// variant: even_elements ; WRITES=(i%2==0)
// variant: first_row ; WRITES=(row==0)
// variant: all_but_the_last ; WRITES=(row+1<get_num_groups(0)||i+1<hidden)
// variant: first_half ; WRITES=(i<hidden/2)
// variant: not_where_it_was_zero ; WRITES=(dst[i]!=0.0f&&i%64!=63)
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (WRITES) dst[i] = silu(gate[i]) * gate[hidden + i];
  }
}
