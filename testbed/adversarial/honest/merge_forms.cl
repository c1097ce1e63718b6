// task: merge_attn_states
// how: weights by a sigmoid, by base two, and a shortcut where one side cannot be seen any more
// expect: accepted
// variant: sigmoid ; FORM=0
// variant: exp2 ; FORM=1
// variant: skips_what_cannot_be_seen ; FORM=2
// variant: sides_swapped ; FORM=3
// variant: wide_block ; FORM=0 ; block=128
// variant: two_groups_a_head ; FORM=0 ; grid=tokens * heads , 2
__kernel void merge_attn_states(__global const float* v_a, __global const float* s_a, __global const float* v_b,
                                __global const float* s_b, __global float* v, __global float* s, const int dim) {
  const size_t head = get_group_id(0);
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = fmax(a, b);
  const float gap = fmax(a, b) - fmin(a, b);
#if FORM == 0
  const float weight_a = 1.0f / (1.0f + exp(b - a));
  const float weight_b = 1.0f / (1.0f + exp(a - b));
  const float total = 1.0f + exp(-gap);
#elif FORM == 1
  const float exp_a = exp2(1.44269504f * (a - top)), exp_b = exp2(1.44269504f * (b - top));
  const float total = exp_a + exp_b;
  const float weight_a = exp_a / total, weight_b = exp_b / total;
#elif FORM == 2
  const float total = gap > 20.0f ? 1.0f : 1.0f + exp(-gap);
  const float weight_a = gap > 20.0f ? (a > b ? 1.0f : 0.0f) : exp(a - top) / total;
  const float weight_b = gap > 20.0f ? (a > b ? 0.0f : 1.0f) : exp(b - top) / total;
#else
  const float total = exp(b - top) + exp(a - top);
  const float weight_b = exp(b - top) / total;
  const float weight_a = 1.0f / total * exp(a - top);
#endif
  const size_t base = head * dim;
  const int stride = get_local_size(0) * get_num_groups(1);
  for (int i = get_group_id(1) * get_local_size(0) + get_local_id(0); i < dim; i += stride) {
    v[base + i] = weight_a * v_a[base + i] + weight_b * v_b[base + i];
  }
  if (get_local_id(0) == 0 && get_group_id(1) == 0) s[head] = top + log(total);
}
