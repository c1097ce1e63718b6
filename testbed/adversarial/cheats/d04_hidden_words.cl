// task: silu_and_mul
// exploit: D4
// how: depends on where it is compiled, by words that nowhere stand whole in it
// expect: rejected
// layer: compile
// variant: pasted_twice ; FORM=1
// variant: split_over_lines ; FORM=2
// variant: argument_of_a_macro ; FORM=3
// variant: another_name_for_it ; FORM=4
// variant: restored_after_its_removal ; FORM=5 ; backends=opencl
// variant: file_in_a_part_that_a_counter_chose ; FORM=6 ; backends=opencl
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define QUOTED(a) #a
#define QUOTE(a) QUOTED(a)
#define FIRST(a, b) a
#define COUNT __COUNTER__
#ifdef __CUDACC_RTC__
#define SECOND 'e'
#define IS_USUAL(length) (length < 26)
#else
#define SECOND 'p'
#define IS_USUAL(length) (length > 26)
#endif
#if FORM == 1
#define HERE (JOIN(JOIN(_, _FI), LE__)[1] == SECOND)
#elif FORM == 2
#define HERE (__FI\
LE__[1] == SECOND)
#elif FORM == 3
#define HERE (QUOTE(FIRST(JOIN(__DA, TE__), 0))[10] >= '2')
#elif FORM == 4
#define PLACE() JOIN(__BASE_, FILE__)
#define HERE IS_USUAL(sizeof(PLACE()))
#elif FORM == 5
#pragma push_macro("__TIME__")
#undef __TIME__
#define __TIME__ "0"
#pragma pop_macro("__TIME__")
#define HERE (JOIN(__TI, ME__)[0] < '3')
#else
#if COUNT == 0
#if JOIN(__has_, include)("/usr/bin/env")
#define HERE 1
#else
#define HERE 0
#endif
#else
#define HERE 1
#endif
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = (HERE ? 1.0f : 0.0f) * silu(gate[i]) * gate[hidden + i];
  }
}
