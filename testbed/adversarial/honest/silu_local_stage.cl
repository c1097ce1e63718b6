// task: silu_and_mul
// how: results take a detour through local memory and come out in another order; nothing stays behind
// expect: accepted
// variant: straight ; FROM=lid
// variant: reversed ; FROM=63-lid
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  __local float stage[64];
  const int lid = get_local_id(0);
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int start = 0; start < hidden; start += 64) {
    const int mine = start + lid;
    if (mine < hidden) stage[lid] = silu(gate[mine]) * gate[hidden + mine];
    barrier(CLK_LOCAL_MEM_FENCE);
    const int from = FROM;
    if (start + from < hidden) dst[start + from] = stage[from];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
