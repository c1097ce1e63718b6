// task: silu_and_mul
// exploit: D18
// how: a launch that fails or covers too little, and takes no time
// expect: rejected
// layer: launch
// variant: block_too_large ; block=8192
// variant: shared_memory_too_large ; shared=1073741824
// variant: no_groups ; grid=tokens - tokens
// variant: one_group ; grid=1 ; layer=correctness
// variant: negative_block ; block=0 - 64
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
