#include <hip/hip_runtime.h>
// One step of heat diffusion on a height x width grid: the 5-point stencil, edges held fixed.
extern "C" __global__ void stencil(const float* u, float* next, int height, int width, float alpha) {
  const int x = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
  const int y = hipBlockIdx_y * hipBlockDim_y + hipThreadIdx_y;
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    next[at] = u[at];
    return;
  }
  const float neighbours = u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
  next[at] = u[at] + alpha * (neighbours - 4.0f * u[at]);
}
