// task: stencil
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: alpha_ignored ; ALPHA=0.25f
// variant: centre_weighs_three ; CENTRE=3.0f
// variant: left_twice ; RIGHT=u[at-1]
// variant: edge_is_one_wider ; EDGE=(x<=1||y==0||x>=width-1||y==height-1)
// variant: edge_zero ; HELD=0.0f
// variant: edge_not_written ; WRITES_EDGE=0
// variant: last_row_skipped ; LAST=(y==height-1)
// variant: last_column_skipped ; LAST=(x==width-1)
// variant: in_place_order ; RIGHT=next[at+1] ; layer=
#ifndef ALPHA
#define ALPHA alpha
#endif
#ifndef CENTRE
#define CENTRE 4.0f
#endif
#ifndef RIGHT
#define RIGHT u[at + 1]
#endif
#ifndef EDGE
#define EDGE (x == 0 || y == 0 || x == width - 1 || y == height - 1)
#endif
#ifndef HELD
#define HELD u[at]
#endif
#ifndef WRITES_EDGE
#define WRITES_EDGE 1
#endif
#ifndef LAST
#define LAST 0
#endif
__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  const int x = get_global_id(0);
  const int y = get_global_id(1);
  if (x >= width || y >= height || LAST) return;
  const int at = y * width + x;
  if (EDGE) {
    if (WRITES_EDGE) next[at] = HELD;
    return;
  }
  next[at] = u[at] + ALPHA * (u[at - 1] + RIGHT + u[at - width] + u[at + width] - CENTRE * u[at]);
}
