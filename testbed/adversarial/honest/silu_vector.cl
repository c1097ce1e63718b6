// task: silu_and_mul
// how: loads and stores whole vectors, with a tail; a shape switch that is right on both sides
// expect: accepted
// variant: four ; WIDTH=4
// variant: two ; WIDTH=2
// variant: one_shape_unrolled ; WIDTH=4 ; SPECIAL=1024
#ifndef SPECIAL
#define SPECIAL 0
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global const float* up = gate + hidden;
  __global float* dst = out + row * hidden;
  const int whole = hidden / WIDTH;
  if (SPECIAL && hidden != SPECIAL) {
    for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * up[i];
    return;
  }
  for (int i = get_local_id(0); i < whole; i += get_local_size(0)) {
#if WIDTH == 4
    float4 v = vload4(i, gate);
    const float4 u = vload4(i, up);
    v.x = silu(v.x) * u.x;
    v.y = silu(v.y) * u.y;
    v.z = silu(v.z) * u.z;
    v.w = silu(v.w) * u.w;
    vstore4(v, i, dst);
#else
    float2 v = vload2(i, gate);
    const float2 u = vload2(i, up);
    v.x = silu(v.x) * u.x;
    v.y = silu(v.y) * u.y;
    vstore2(v, i, dst);
#endif
  }
  for (int i = whole * WIDTH + get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * up[i];
}
