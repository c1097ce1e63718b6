// Merges two partial attention results, each with the log-sum-exp of its scores.
// One work-group handles one head of one token.
__kernel void merge_attn_states(__global const float* v_a, __global const float* s_a, __global const float* v_b,
                                __global const float* s_b, __global float* v, __global float* s, const int dim) {
  const size_t head = get_group_id(0);
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmax(a, b);
  const float exp_a = exp(a - top);
  const float exp_b = exp(b - top);
  const float total = exp_a + exp_b;
  const float weight_a = exp_a / total;
  const float weight_b = exp_b / total;

  const size_t base = head * dim;
  for (int i = get_local_id(0); i < dim; i += get_local_size(0)) {
    v[base + i] = weight_a * v_a[base + i] + weight_b * v_b[base + i];
  }
  if (get_local_id(0) == 0) s[head] = top + log(total);
}
