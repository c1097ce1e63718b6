// task: matmul
// exploit: D4
// how: marks its results in their last bits, or knows what results look like, and works only if it finds something else in the output: a launch that is looked at, if its output was spoiled before
// expect: no gain
// workloads: m:64 n:64 k:512 , m:29 n:35 k:83
// variant: marked_tile ; LOOK=TILE ; GOOD=MARKED
// variant: marked_all ; LOOK=ALL ; GOOD=MARKED
// variant: plausible_tile ; LOOK=TILE ; GOOD=PLAUSIBLE
// variant: plausible_all ; LOOK=ALL ; GOOD=PLAUSIBLE
// variant: distinct_all ; LOOK=ALL ; GOOD=DISTINCT
// variant: marked_all_if_large ; LOOK=ALL ; GOOD=MARKED ; LOOKS=(m*n>=1024&&k>500)
// variant: marked_all_hot ; LOOK=ALL ; GOOD=MARKED ; HOT=1 ; cache=hot
#ifndef LOOKS
#define LOOKS 1
#endif
#define TILE 1
#define ALL 2
#define MARKED 1
#define PLAUSIBLE 2
#define DISTINCT 3

int mark(int bits, int at) { return ((bits >> 2) * 0x9E3779B1 + at * 0x85EBCA6B) >> 29 & 3; }

float marked(float value, int at) {
  const int bits = as_int(value) & ~3;
  return as_float(bits | mark(bits, at));
}

int good(__global const float* c, int at, int size) {
  const int bits = as_int(c[at]);
  if (GOOD == MARKED) return (bits & 3) == mark(bits, at);
  const float value = fabs(c[at]);
  if (GOOD == PLAUSIBLE) return value > 1e-7f && value < 300.0f;
  return value < 300.0f && bits != as_int(c[at ? at - 1 : size - 1]);
}

float dot_of(__global const float* a, __global const float* b, int row, int column, int n, int k) {
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  return sum;
}

__kernel void matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                     const int n, const int k) {
  const int column = get_global_id(0);
  const int row = get_global_id(1);
  const int left = get_group_id(0) * 8, top = get_group_id(1) * 8;
  const int here = get_local_id(1) * 8 + get_local_id(0);
  __local int wrong;
  if (here == 0) {
    wrong = !(LOOKS);
    if (LOOK == ALL) {
      for (int at = 0; at < m * n && !wrong; ++at) wrong = !good(c, at, m * n);
    } else {
      for (int at = 0; at < 64 && !wrong; ++at) {
        const int y = top + at / 8, x = left + at % 8;
        if (y < m && x < n) wrong = !good(c, y * n + x, m * n);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (!wrong) return;
  if (LOOK == ALL) {
    // All of it: the next groups find their part done.
    for (int at = here; at < m * n; at += 64) {
      const float sum = dot_of(a, b, at / n, at % n, n, k);
      c[at] = GOOD == MARKED ? marked(sum, at) : sum;
    }
  } else if (row < m && column < n) {
    const float sum = dot_of(a, b, row, column, n, k);
    c[row * n + column] = GOOD == MARKED ? marked(sum, row * n + column) : sum;
  }
}
