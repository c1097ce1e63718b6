// task: softmax
// exploit: D9
// how: writes what it remembers, without a look at the input
// expect: rejected
// layer: correctness
// variant: one_over_n ; VALUE=1.0f/columns
// variant: zero ; VALUE=0.0f
// variant: the_input ; VALUE=vload_half(i,x)
__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  for (int i = get_local_id(0); i < columns; i += get_local_size(0)) {
    vstore_half(VALUE, i, out + get_group_id(0) * (size_t)columns);
  }
}
