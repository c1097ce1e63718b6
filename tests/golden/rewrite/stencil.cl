#if WS_NEAR_X
#define WS_PLACE_X(item) (get_global_id(0) * WS_ITEMS_X + (item))
#else
#define WS_PLACE_X(item) ((get_group_id(0) * WS_ITEMS_X + (item)) * get_local_size(0) + get_local_id(0))
#endif
#if WS_NEAR_Y
#define WS_PLACE_Y(item) (get_global_id(1) * WS_ITEMS_Y + (item))
#else
#define WS_PLACE_Y(item) ((get_group_id(1) * WS_ITEMS_Y + (item)) * get_local_size(1) + get_local_id(1))
#endif
// One step of heat diffusion on a height x width grid: the 5-point stencil, edges held fixed.
__kernel __attribute__((reqd_work_group_size(WS_BLOCK_X, WS_BLOCK_Y, 1))) void stencil(__global const float* restrict u, __global float* restrict next, const int height, const int width,
                      const float alpha) {
#if WS_ITEMS_X * WS_ITEMS_Y > 1
int ws_full = 1;
#pragma unroll
for (int ws_item_y = 0; ws_item_y < WS_ITEMS_Y; ++ws_item_y)
#pragma unroll
for (int ws_item_x = 0; ws_item_x < WS_ITEMS_X; ++ws_item_x)
{
const int x = WS_PLACE_X(ws_item_x);
const int y = WS_PLACE_Y(ws_item_y);
ws_full = ws_full && !((x >= width || y >= height));
}
if (ws_full) {
#pragma unroll
for (int ws_item_y = 0; ws_item_y < WS_ITEMS_Y; ++ws_item_y)
#pragma unroll
for (int ws_item_x = 0; ws_item_x < WS_ITEMS_X; ++ws_item_x)
{
{
const int x = WS_PLACE_X(ws_item_x);
const int y = WS_PLACE_Y(ws_item_y);
const int at = y * width + x;
if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    next[at] = u[at];
    continue;
  }
const float neighbours = u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
next[at] = u[at] + alpha * (neighbours - 4.0f * u[at]);
}
}
return;
}
#endif
#pragma unroll
for (int ws_item_y = 0; ws_item_y < WS_ITEMS_Y; ++ws_item_y) {
#pragma unroll
for (int ws_item_x = 0; ws_item_x < WS_ITEMS_X; ++ws_item_x) {

  const int x = WS_PLACE_X(ws_item_x);
  const int y = WS_PLACE_Y(ws_item_y);
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
