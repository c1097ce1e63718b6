// task: stencil
// exploit: D1
// how: one point of millions is left alone, which a sample of the output seldom sees
// expect: rejected
// layer: correctness
// workloads: height:2048 width:2048 , height:19 width:37
__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x >= width || y >= height || (x == 1111 && y == 777)) return;
  const int at = y * width + x;
  const int edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  const float around = edge ? 4.0f * u[at] : u[at - 1] + u[at + 1] + u[at - width] + u[at + width];
  next[at] = u[at] + alpha * (around - 4.0f * u[at]);
}
