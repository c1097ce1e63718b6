// task: stencil
// how: the scalar is built in, or one kind of grid or of values is wrong
// expect: rejected
// layer: correctness
// variant: alpha_built_in ; ALPHA=0.2f
// variant: alpha_at_most_one ; ALPHA=fmin(alpha,1.0f)
// variant: flat_place ; WRONG=(u[at]!=0.0f&&u[at]==u[at-1]&&u[at]==u[at+1]&&u[at]==u[at-width]&&u[at]==u[at+width]) ; ANSWER=0.0f
// variant: not_a_number_left_out ; WRONG=isnan(u[at+1]) ; ANSWER=u[at] ; non_finite=yes ; status=varies
// variant: large_left_out ; WRONG=(fabs(u[at])>4194304.0f) ; ANSWER=u[at]
// variant: tiny_is_zero ; WRONG=(fabs(u[at])<0x1p-41f) ; ANSWER=0.0f
// variant: tall_grids ; WRONG=(height>2*width&&width>2) ; ANSWER=u[at]
// variant: grid_between ; WRONG=(width>40&&width<120) ; ANSWER=u[at]
#ifndef ALPHA
#define ALPHA alpha
#endif
#ifndef WRONG
#define WRONG 0
#define ANSWER 0.0f
#endif
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
  next[at] = WRONG ? ANSWER : u[at] + ALPHA * (neighbours - 4.0f * u[at]);
}
