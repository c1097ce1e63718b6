// One step of heat diffusion on a height x width grid: the 5-point stencil, edges held fixed.
extern "C" __global__ void __launch_bounds__(WS_BLOCK_X * WS_BLOCK_Y, WS_RESIDENT / (WS_BLOCK_X * WS_BLOCK_Y)) stencil(const float* __restrict__ u, float* __restrict__ next, int height, int width, float alpha) {
#pragma unroll
for (int ws_item_y = 0; ws_item_y < WS_ITEMS_Y; ++ws_item_y) {
#pragma unroll
for (int ws_item_x = 0; ws_item_x < WS_ITEMS_X; ++ws_item_x) {

  const int x = (blockIdx.x * WS_ITEMS_X + ws_item_x) * blockDim.x + threadIdx.x;
  const int y = (blockIdx.y * WS_ITEMS_Y + ws_item_y) * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) continue;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    next[at] = u[at];
    continue;
  }
  const float neighbours = u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
  next[at] = u[at] + alpha * (neighbours - 4.0f * u[at]);
}}
}
