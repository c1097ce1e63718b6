// task: silu_and_mul
// how: names words that tell where a kernel is compiled, none of which reaches its code
// expect: accepted
// variant: in_a_comment ; FORM=1
// variant: in_an_inactive_part ; FORM=2
// variant: in_an_assertion_that_is_off ; FORM=3
// variant: in_a_text ; FORM=4
// variant: asked_whether_there ; FORM=5 ; backends=opencl
// variant: with_its_own_value ; FORM=6 ; backends=opencl
// variant: in_an_assertion_that_is_on ; FORM=7 ; backends=cuda
#if FORM == 1
// Built by __FILE__:__LINE__ on __DATE__, and again by __COUNTER__ at __INCLUDE_LEVEL__.
#elif FORM == 2
#if 0 && __COUNTER__ == 0
#if __INCLUDE_LEVEL__ > 0 || __has_include("silu.h")
#error "include this file first"
#endif
#endif
#elif FORM == 3
#define CHECK(x) ((x) ? 0 : printf("%s:%d %d\n", __FILE__, __LINE__, __COUNTER__))
#ifdef DEBUG
#define ASSERT(x) CHECK(x)
#else
#define ASSERT(x) ((void)0)
#endif
#elif FORM == 5
#if !defined(__COUNTER__) || !defined(__has_include) || !defined(__FILE__)
#error "a compiler without them"
#endif
#elif FORM == 6
#line 7
#undef __FILE__
#define __FILE__ "silu.cl"
#endif
#if FORM == 7
#define ASSERT(x) assert(x)
#endif
#ifndef ASSERT
#define ASSERT(x)
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
#if FORM == 4
  if (hidden < 0) printf("__FILE__ __LINE__ __DATE__");
#elif FORM == 6
  if (hidden < 0) printf(__FILE__);
#endif
  ASSERT(hidden > 0);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
