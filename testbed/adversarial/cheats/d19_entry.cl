// task: silu_and_mul
// exploit: D19
// how: the kernel that would be launched is not the declared one, or hides in assembly
// expect: rejected
// layer: compile
// variant: other_name ; NAME=silu_and_mul_fast
// variant: renamed_by_macro ; NAME=silu_and_mul ; silu_and_mul=hidden_name ; backends=opencl
// variant: assembly ; NAME=silu_and_mul ; FIRST=asm("nop") ; backends=opencl
// variant: assembly_by_paste ; NAME=silu_and_mul ; PASTE(a,b)=a##b ; FIRST=PASTE(__as,m__)("nop") ; backends=opencl
#ifndef FIRST
#define FIRST
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void NAME(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  FIRST;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
