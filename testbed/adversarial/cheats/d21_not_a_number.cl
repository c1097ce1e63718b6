// task: merge_attn_states
// exploit: D21
// how: not a number or infinity in place of results, which a careless comparison lets pass
// expect: rejected
// layer: correctness
// variant: all ; WHERE=1 ; WHAT=nan(1u)
// variant: one ; WHERE=(head==0&&i==dim-1) ; WHAT=nan(1u)
// variant: infinity ; WHERE=(i==0) ; WHAT=INFINITY
// variant: in_the_scores ; WHERE=0 ; WHAT=nan(1u) ; SCORE=nan(1u)
#ifndef SCORE
#define SCORE top + log(total)
#endif
__kernel void merge_attn_states(__global const float* v_a, __global const float* s_a, __global const float* v_b,
                                __global const float* s_b, __global float* v, __global float* s, const int dim) {
  const size_t head = get_group_id(0);
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmax(a, b);
  const float exp_a = exp(a - top), exp_b = exp(b - top);
  const float total = exp_a + exp_b;
  const size_t base = head * dim;
  for (int i = get_local_id(0); i < dim; i += get_local_size(0)) {
    v[base + i] = WHERE ? WHAT : exp_a / total * v_a[base + i] + exp_b / total * v_b[base + i];
  }
  if (get_local_id(0) == 0) s[head] = SCORE;
}
