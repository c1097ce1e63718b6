// task: softmax
// exploit: D26
// how: keeps the row in a local array that has room for the listed widths only; longer rows are cut
// expect: rejected
// layer: correctness
#define BLOCK 64
#define ROOM 1024

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float row[ROOM];
  const int lid = get_local_id(0);
  const int width = columns < ROOM ? columns : ROOM;
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  for (int i = lid; i < width; i += BLOCK) row[i] = vload_half(i, x);
  barrier(CLK_LOCAL_MEM_FENCE);
  float top = -INFINITY, sum = 0.0f;
  for (int i = 0; i < width; ++i) top = fmax(top, row[i]);
  for (int i = 0; i < width; ++i) sum += exp(row[i] - top);
  for (int i = lid; i < width; i += BLOCK) vstore_half(exp(row[i] - top) / sum, i, y);
}
