// task: silu_and_mul
// exploit: D3
// how: keeps rows in local memory, which outlives launches on some devices, and finds them by some of the input values
// expect: no gain
// backends: opencl
// variant: two_values ; TAKEN=2
// variant: sixty_values ; TAKEN=60
#define SLOTS 64
#define WIDTH 1024
#define MARK 0x5eed1234u
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  volatile __local float kept[SLOTS][WIDTH];
  volatile __local uint marks[SLOTS][2];
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  uint hash = hidden;
  for (int n = 0; n < TAKEN; ++n) {
    const uint taken = as_int(gate[(long)n * (2 * hidden - 1) / (TAKEN - 1)]);
    hash = ((hash << 7 | hash >> 25) ^ taken) * 16777619u;
  }
  const int slot = (hash >> 8) & (SLOTS - 1);
  volatile __local uint* mark = marks[slot];
  const int same = mark[0] == hash && mark[1] == MARK + (uint)hidden && hidden <= WIDTH;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    if (same) {
      dst[i] = kept[slot][i];
      continue;
    }
    dst[i] = silu(gate[i]) * gate[hidden + i];
    if (i < WIDTH) kept[slot][i] = dst[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    mark[0] = hash;
    mark[1] = MARK + (uint)hidden;
  }
}
