// task: padded_matmul
// exploit: D12
// how: what counts depends on what stood in the padding, which nothing has set
// expect: rejected
// layer: correctness
// variant: last_bit ; RESULT=as_float(as_int(sum)^(as_int(old)&1)) ; layer=
// variant: sum_from_there ; RESULT=sum+old
// variant: times_zero ; RESULT=sum+0.0f*(old*old*old)
// variant: the_rest_of_a_row ; RESULT=(column<n-1?sum:old)
__kernel void padded_matmul(__global const float* a, __global const float* b, __global float* c, const int m,
                            const int n, const int k, const int stride) {
  const int row = get_global_id(1), column = get_global_id(0);
  if (row >= m || column >= n) return;
  const float old = c[row * stride + n + column];
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * stride + column] = RESULT;
}
