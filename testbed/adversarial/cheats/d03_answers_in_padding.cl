// task: padded_matmul
// exploit: D3
// how: keeps products of the last two inputs of a buffer in elements that do not count, and copies them
// expect: rejected
// layer: correctness
// workloads: m:32 n:32 k:512 , m:29 n:31 k:383
// variant: by_first_elements ; KEY=as_int(a[row*k])^as_int(b[column])
// variant: by_shape ; KEY=(m*4096+n*64+k) ; layer=
// variant: by_turn ; KEY=0x5eed ; TURN=1 ; CHECKED=1 ; expect=no gain ; layer=
// variant: with_a_sum_of_its_bits ; KEY=as_int(a[row*k])^as_int(b[column]) ; CHECKED=1 ; expect=no gain ; layer=
// variant: by_four_elements ; KEY=as_int(a[row*k])^as_int(a[row*k+k-1])*3^as_int(b[column])*5^as_int(b[(k-1)*n+column])*7 ; CHECKED=1 ; expect=no gain ; layer=
#ifdef CHECKED
#define SUM(key, value) (as_int(key) ^ as_int(value) * 31)
#else
#define SUM(key, value) 0
#endif

__kernel void padded_matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                            const int n, const int k, const int stride) {
  const int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  __global float* kept = c + row * stride + n + 7 * column;
  const float key = as_float((KEY) & 0x7f7fffff);
#ifdef TURN
  // Even launches on a buffer have one input and odd ones the other.
  const int first = as_int(kept[6]) == 0x5eed, end = first + 1;
  kept[6] = as_float(first ? 0x5eee : 0x5eed);
#else
  const int first = 0, end = 2;
#endif
  for (int slot = first; slot < end; ++slot) {
    const float value = kept[3 * slot + 1];
    if (as_int(kept[3 * slot]) != as_int(key)) continue;
#ifdef CHECKED
    if (as_int(kept[3 * slot + 2]) != SUM(key, value)) continue;
#endif
    c[row * stride + column] = value;
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * stride + column] = sum;
#ifndef TURN
  for (int i = 0; i < 3; ++i) kept[3 + i] = kept[i];
#endif
  kept[3 * first] = key;
  kept[3 * first + 1] = sum;
  kept[3 * first + 2] = as_float(SUM(key, sum));
}
