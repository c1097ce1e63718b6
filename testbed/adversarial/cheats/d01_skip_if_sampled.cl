// task: silu_and_mul
// exploit: D1
// how: a row of which some samples are right already is left alone; a row that was spoiled is computed
// expect: no gain
// variant: sixteen_samples ; SAMPLES=16
// variant: forty_samples ; SAMPLES=40
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  __local int done;
  if (get_local_id(0) == 0) {
    done = 1;
    for (int n = 0; n < SAMPLES && done; ++n) {
      const int i = (long)n * (hidden - 1) / (SAMPLES - 1);
      done = dst[i] == silu(gate[i]) * gate[hidden + i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (done) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
