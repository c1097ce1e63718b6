// task: silu_and_mul
// how: items take their next element from an atomic counter in local memory, so who computes what is chance
// expect: accepted
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  __local int next;
  if (get_local_id(0) == 0) next = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = atomic_inc(&next); i < hidden; i = atomic_inc(&next)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
