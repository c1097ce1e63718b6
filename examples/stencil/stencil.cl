// One step of heat diffusion on a height x width grid: the 5-point stencil, edges held fixed.
__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    next[at] = u[at];
    return;
  }
  const float neighbours = u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
  next[at] = u[at] + alpha * (neighbours - 4.0f * u[at]);
}
