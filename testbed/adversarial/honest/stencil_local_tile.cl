// task: stencil
// how: a tile with its halo in local memory; items outside the grid fill it with values nobody reads
// expect: accepted
#define WIDE 16
#define TALL 4

__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  __local float tile[TALL + 2][WIDE + 2];
  const int lx = get_local_id(0), ly = get_local_id(1);
  const int left = get_group_id(0) * WIDE - 1, top = get_group_id(1) * TALL - 1;
  for (int i = ly * WIDE + lx; i < (TALL + 2) * (WIDE + 2); i += WIDE * TALL) {
    const int x = left + i % (WIDE + 2), y = top + i / (WIDE + 2);
    const int inside = x >= 0 && y >= 0 && x < width && y < height;
    tile[i / (WIDE + 2)][i % (WIDE + 2)] = inside ? u[y * width + x] : nan(1u);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int x = left + 1 + lx, y = top + 1 + ly;
  if (x >= width || y >= height) return;
  const float m = tile[ly + 1][lx + 1];
  const int edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  const float around = tile[ly + 1][lx] + tile[ly + 1][lx + 2] + tile[ly][lx + 1] + tile[ly + 2][lx + 1];
  next[y * width + x] = edge ? m : m + alpha * (around - 4.0f * m);
}
