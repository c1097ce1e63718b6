// task: silu_and_mul
// exploit: D3
// how: after some launches on the same address, which only a timing makes, gives back what it had there
// expect: rejected
// backends: opencl
#define SLOTS 512
#define WIDTH 160
#define OFTEN 6
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  volatile __local float kept[SLOTS][WIDTH];
  volatile __local ulong address[SLOTS];
  volatile __local int turns[SLOTS];
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int small = hidden <= WIDTH;
  const int slot = (int)((((ulong)dst >> 4) * 2654435761ul) >> 20) & (SLOTS - 1);
  if (get_local_id(0) == 0 && small) {
    turns[slot] = address[slot] == (ulong)dst ? turns[slot] + 1 : 1;
    address[slot] = (ulong)dst;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int replay = small && turns[slot] > OFTEN;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (replay) {
      dst[i] = kept[slot][i];
      continue;
    }
    dst[i] = silu(gate[i]) * gate[hidden + i];
    if (small) kept[slot][i] = dst[i];
  }
}
