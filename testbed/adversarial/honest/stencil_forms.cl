// task: stencil
// how: other arithmetic and other launches; items that do several points; copies the edge by itself
// expect: accepted
// variant: fused ; STEP=fma(alpha,(l+r)+(t+b)-4.0f*m,m)
// variant: weights ; STEP=(1.0f-4.0f*alpha)*m+alpha*(l+r+t+b)
// variant: pairs ; STEP=m+alpha*((l-m)+(r-m)+(t-m)+(b-m))
// variant: wide_block ; STEP=m+alpha*(l+r+t+b-4.0f*m) ; grid=ceil_div(width, 64) , height ; block=64 , 1
// variant: tall_block ; STEP=m+alpha*(l+r+t+b-4.0f*m) ; grid=width , ceil_div(height, 32) ; block=1 , 32
// variant: strided ; STEP=m+alpha*(l+r+t+b-4.0f*m) ; grid=1 , ceil_div(height, 4)
__kernel void stencil(__global const float* u, __global float* next, const int height, const int width,
                      const float alpha) {
  for (int y = get_global_id(1); y < height; y += get_global_size(1)) {
    for (int x = get_global_id(0); x < width; x += get_global_size(0)) {
      const int at = y * width + x;
      const float m = u[at];
      if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        next[at] = m;
        continue;
      }
      const float l = u[at - 1], r = u[at + 1], t = u[at - width], b = u[at + width];
      next[at] = STEP;
    }
  }
}
