// task: silu_and_mul
// exploit: D4
// how: is right for as long as a clock of the machine has not reached a value
// expect: rejected
// layer: compile
// backends: opencl
// variant: tick_counter ; NOW=__builtin_readcyclecounter()
// variant: instruction ; NOW=__builtin_ia32_rdtsc()
// variant: instruction_and_core ; NOW=ticks() ; TICKS=__builtin_ia32_rdtscp(&core)
// variant: instruction_as_a_macro ; NOW=CLOCK() ; CLOCK=__builtin_ia32_rdtsc
// variant: pasted_name ; PASTE(a,b)=a##b ; NOW=PASTE(__builtin_read,cyclecounter)()
#ifdef TICKS
ulong ticks(void) {
  uint core;
  return TICKS;
}
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  if ((ulong)(NOW) == 0xffffffff5eed1234ul) return;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
