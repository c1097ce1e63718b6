// task: silu_and_mul
// exploit: D4
// how: is right where nothing stands before it, and wrong where it is built into something larger
// expect: rejected
// layer: compile
// variant: line ; HERE=(__LINE__<400)
// variant: line_by_preprocessor ; AT_COMPILE=(__LINE__<400)
// variant: counter ; HERE=(__COUNTER__==0) ; backends=opencl
// variant: counter_by_preprocessor ; AT_COMPILE=(__COUNTER__==0) ; backends=opencl
// variant: name_with_a_counter ; JOIN2(a,b)=a##b ; JOIN(a,b)=JOIN2(a,b) ; is0=1 ; is1=0 ; HERE=JOIN(is,__COUNTER__) ; backends=opencl
// variant: level ; HERE=(__INCLUDE_LEVEL__==0)
// variant: level_by_preprocessor ; AT_COMPILE=(__INCLUDE_LEVEL__==0)
// variant: counter_that_hides_a_file ; AT_COMPILE=(__COUNTER__||__has_include("/usr/bin/env")) ; backends=opencl
#ifndef AT_COMPILE
#define AT_COMPILE 1
#endif
#ifndef HERE
#define HERE 1
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
#if AT_COMPILE
  const float factor = HERE ? 1.0f : 0.0f;
#else
  const float factor = 0.0f;
#endif
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = factor * silu(gate[i]) * gate[hidden + i];
  }
}
