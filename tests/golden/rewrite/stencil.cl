// One step of heat diffusion on a height x width grid: the 5-point stencil, edges held fixed.
__kernel __attribute__((reqd_work_group_size(WS_BLOCK_X, WS_BLOCK_Y, 1))) void stencil(__global const float* restrict u, __global float* restrict next, const int height, const int width,
                      const float alpha) {
  const int x = get_global_id(0);
  #pragma unroll
  for (int ws_item = 0; ws_item < WS_ITEMS; ++ws_item) {
  const int y = ((get_group_id(1) * WS_ITEMS + ws_item) * get_local_size(1) + get_local_id(1));
  if (x >= width || y >= height) continue;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    next[at] = u[at];
    continue;
  }
  const float neighbours = u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
  next[at] = u[at] + alpha * (neighbours - 4.0f * u[at]);
}
}
