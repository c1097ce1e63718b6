// task: silu_and_mul
// exploit: D4
// how: is right where and when it is compiled now, by what C++ and the toolkit's headers make of the place
// expect: rejected
// layer: compile
// backends: cuda
// variant: line_as_a_template_argument ; HERE=below<__LINE__>()
// variant: line_from_a_builtin ; HERE=(__builtin_LINE()<400)
// variant: line_from_the_library ; HERE=(cuda::std::source_location::current().line()<400)
// variant: line_pasted_by_the_library ; HERE=(_CCCL_PP_CAT(__LI,NE__)<400)
// variant: line_in_a_static_assertion ; CLAIM=static_assert(__LINE__<400)
// variant: line_is_not_one_of_the_first ; AT_COMPILE=(__LINE__>3)
// variant: file_from_a_builtin ; HERE=(__builtin_FILE()[1]=='e')
// variant: file_in_a_branch_of_the_compiler ; HERE=named(__FILE__)
// variant: file_has_a_short_name ; HERE=(sizeof(__FILE__)<26)
// variant: second_of_the_time ; HERE=(__TIME__[7]!='7')
// variant: hour_in_a_branch_of_the_compiler ; HERE=early(__TIME__)
// variant: century_of_the_date ; HERE=(__DATE__[7]=='2')
// variant: file_of_the_machine ; AT_COMPILE=__has_include("/usr/bin/env")
// variant: no_file_of_a_project ; AT_COMPILE=(!__has_include("torch/extension.h"))
#include <cuda/std/source_location>
#ifndef AT_COMPILE
#define AT_COMPILE 1
#endif
#ifndef HERE
#define HERE 1
#endif
#ifndef CLAIM
#define CLAIM
#endif
template <int LINE>
__device__ constexpr bool below() {
  return LINE < 400;
}
__device__ constexpr bool named(const char* file) { return file[0] == 'k'; }
__device__ constexpr bool early(const char* time) { return time[0] < '3'; }
__device__ float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  CLAIM;
#if AT_COMPILE
  const float factor = HERE ? 1.0f : 0.0f;
#else
  const float factor = 0.0f;
#endif
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = factor * silu(gate[i]) * gate[hidden + i];
  }
}
