// task: silu_and_mul
// exploit: D5
// how: arithmetic that is right only for inputs like the ones that are drawn
// expect: rejected
// layer: correctness
// variant: large_gates ; SILU=(x>8.0f?8.0f:x/(1.0f+exp(-x)))
// variant: linear_when_small ; SILU=(fabs(x)<0.004f?0.5f*x:x/(1.0f+exp(-x)))
// variant: negative_gates ; SILU=(x<-9.0f?1.0f:x/(1.0f+exp(-x)))
// variant: zero_gates ; SILU=(x==0.0f?0.25f:x/(1.0f+exp(-x)))
// variant: always_cubic ; SILU=x*(0.5f+0.25f*x-x*x*x/48.0f)
// variant: gates_beyond_scaling ; SILU=(x>300.0f?300.0f:x/(1.0f+exp(-x)))
float silu(float x) { return SILU; }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
