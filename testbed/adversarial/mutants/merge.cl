// task: merge_attn_states
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: maximum_not_subtracted ; TOP=0.0f
// variant: weights_swapped ; WEIGHT_A=weight_b ; WEIGHT_B=weight_a
// variant: plain_mean ; WEIGHT_A=0.5f ; WEIGHT_B=0.5f
// variant: scores_not_written ; S=s[head]=s[head]
// variant: logarithm_to_base_two ; LOG=log2
// variant: score_is_the_maximum ; S=s[head]=top
// variant: last_element_skipped ; END=dim-1
// variant: last_head_skipped ; SKIP=(head+1==get_num_groups(0))
// variant: small_weight_dropped ; WEIGHT_B=(weight_b<0.01f?0.0f:weight_b)
#ifndef TOP
#define TOP fmax(a, b)
#endif
#ifndef WEIGHT_A
#define WEIGHT_A weight_a
#endif
#ifndef WEIGHT_B
#define WEIGHT_B weight_b
#endif
#ifndef LOG
#define LOG log
#endif
#ifndef S
#define S s[head] = top + LOG(total)
#endif
#ifndef END
#define END dim
#endif
#ifndef SKIP
#define SKIP 0
#endif
__kernel void merge_attn_states(__global const float* v_a, __global const float* s_a, __global const float* v_b,
                                __global const float* s_b, __global float* v, __global float* s, const int dim) {
  const size_t head = get_group_id(0);
  if (SKIP) return;
  const float a = s_a[head];
  const float b = s_b[head];
  const float top = TOP;
  const float exp_a = exp(a - top);
  const float exp_b = exp(b - top);
  const float total = exp_a + exp_b;
  const float weight_a = exp_a / total;
  const float weight_b = exp_b / total;
  const size_t base = head * dim;
  for (int i = get_local_id(0); i < END; i += get_local_size(0)) {
    v[base + i] = WEIGHT_A * v_a[base + i] + WEIGHT_B * v_b[base + i];
  }
  if (get_local_id(0) == 0) S;
}
