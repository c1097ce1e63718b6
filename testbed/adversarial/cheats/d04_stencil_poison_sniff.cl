// task: stencil
// exploit: D4
// how: each point is computed only where it and its neighbour hold the same word, as after poisoning
// expect: rejected
__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  const int y = get_global_id(1);
  if (get_local_id(0) != 0 || y >= height) return;
  const int left = get_group_id(0) * 16, right = left + 15 < width - 1 ? left + 15 : width - 1;
  const int word = as_int(next[y * width + right]);
  if (word == 0 || (left < right && word != as_int(next[y * width + right - 1]))) return;
  for (int x = left; x <= right; ++x) {
    const int at = y * width + x;
    const int edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
    next[at] = u[at];
    if (!edge) next[at] += alpha * (u[at - 1] + u[at + 1] + u[at - width] + u[at + width] - 4.0f * u[at]);
  }
}
