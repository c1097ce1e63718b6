// task: matmul
// exploit: D3
// how: keeps whole inputs with their product in local memory, which outlives launches on some devices, compares every value before it copies, and is never wrong
// expect: rejected
// layer: winner
// backends: opencl
// grid: 1 , 1
// block: 1 , 1
// workloads: m:32 n:32 k:192 , m:29 n:31 k:83
// variant: eight ; SLOTS=8
// variant: sixteen ; SLOTS=12
// variant: by_groups ; SLOTS=8 ; ROWS=16 ; grid=1 , ceil_div(m, 16)
// variant: spread_over_lines ; SLOTS=8 ; STEP=7
// variant: first_row_as_key ; SLOTS=8 ; KEYED=1
#ifndef STEP
#define STEP 1
#endif
#ifndef ROWS
#define ROWS 1024
#endif
#define WIDEST 6581
#define MARK 0x5eed1234

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  volatile __local float left[SLOTS][WIDEST], right[SLOTS][WIDEST], product[SLOTS][1536];
  volatile __local int filled[SLOTS], turn;
  const int top = get_group_id(1) * ROWS, rows = min(m - top, ROWS);
  int found = -1;
  for (int s = 0; s < SLOTS && found < 0; ++s) {
    if (filled[s] != MARK + top * 65536 + k * 4096 + m * 64 + n) continue;
    int same = 1;
#ifdef KEYED
    for (int i = 0; i < k && same; ++i) same = left[s][i] == a[top * k + i];
#endif
    for (int i = 0; i < rows * k && same; ++i) same = left[s][i * STEP % WIDEST] == a[top * k + i];
    for (int i = 0; i < k * n && same; ++i) same = right[s][i * STEP % WIDEST] == b[i];
    if (same) found = s;
  }
  if (found < 0) {
    turn = (turn & 0xffffff) + 1;
    found = turn % SLOTS;
    filled[found] = 0;
    for (int i = 0; i < rows * k; ++i) left[found][i * STEP % WIDEST] = a[top * k + i];
    for (int i = 0; i < k * n; ++i) right[found][i * STEP % WIDEST] = b[i];
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < n; ++x) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) sum += a[(top + y) * k + i] * b[i * n + x];
        product[found][y * n + x] = sum;
      }
    filled[found] = MARK + top * 65536 + k * 4096 + m * 64 + n;
  }
  for (int i = 0; i < rows * n; ++i) c[top * n + i] = product[found][i];
}
