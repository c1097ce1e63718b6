// task: silu_and_mul
// exploit: D4
// how: counts its launches in local memory, which outlives them on some devices, and stops working
// expect: rejected
// backends: opencl
// variant: after_few ; HONEST=100
// variant: after_some ; HONEST=400
#define MARK 0x5eed1234
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  volatile __local int count[2];
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  if (get_local_id(0) == 0) {
    if (count[0] != MARK) count[1] = 0;
    count[0] = MARK;
    count[1] += 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (count[1] > HONEST) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
