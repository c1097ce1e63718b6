// task: matmul
// how: tiles of other sizes; one of them stores its tile transposed
// expect: accepted
// variant: four ; TILE=4 ; grid=ceil_div(n, 4) , ceil_div(m, 4) ; block=4 , 4
// variant: sixteen ; TILE=16 ; grid=ceil_div(n, 16) , ceil_div(m, 16) ; block=16 , 16
// variant: transposed ; TILE=8 ; TRANSPOSED=1
#ifdef TRANSPOSED
#define AT(t, y, x) t[x][y]
#else
#define AT(t, y, x) t[y][x]
#endif
__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  __local float a_tile[TILE][TILE];
  __local float b_tile[TILE][TILE];
  const int tx = get_local_id(0);
  const int ty = get_local_id(1);
  const int row = get_group_id(1) * TILE + ty;
  const int column = get_group_id(0) * TILE + tx;
  float sum = 0.0f;
  for (int start = 0; start < k; start += TILE) {
    AT(a_tile, ty, tx) = row < m && start + tx < k ? a[row * k + start + tx] : 0.0f;
    b_tile[ty][tx] = start + ty < k && column < n ? b[(start + ty) * n + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < TILE; ++i) sum += AT(a_tile, ty, i) * b_tile[i][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
