// task: merge_attn_states
// exploit: D5
// how: exponentials of the scores themselves, which overflow for scores that were not drawn here
// expect: rejected
// variant: no_maximum ; TOP=0.0f
// variant: clamped ; TOP=fmin(fmax(a,b),20.0f)
__kernel void merge_attn_states(__global const float* v_a, __global const float* s_a, __global const float* v_b,
                                __global const float* s_b, __global float* v, __global float* s, const int dim) {
  const size_t head = get_group_id(0);
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = TOP;
  const float exp_a = exp(a - top), exp_b = exp(b - top);
  const float total = exp_a + exp_b;
  const size_t base = head * dim;
  for (int i = get_local_id(0); i < dim; i += get_local_size(0)) {
    v[base + i] = exp_a / total * v_a[base + i] + exp_b / total * v_b[base + i];
  }
  if (get_local_id(0) == 0) s[head] = top + log(total);
}
