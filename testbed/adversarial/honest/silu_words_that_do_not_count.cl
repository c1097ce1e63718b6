// task: silu_and_mul
// how: assembly and telling macros in parts that are not compiled, and names that attributes have elsewhere
// expect: accepted
// backends: opencl
// variant: assembly_for_another_device ; FORM=1
// variant: assembly_in_a_macro_without_use ; FORM=2
// variant: place_in_an_assertion_without_use ; FORM=3
// variant: attribute_names_as_names ; FORM=4
// variant: attributes_of_the_language ; FORM=5
// variant: builtins_that_compute ; FORM=6
#if defined(__NV_CL_C_VERSION) && FORM == 1
float fast(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#elif FORM == 2
#define PAUSE __asm__ volatile("pause")
#elif FORM == 3
#define ASSERT(x) ((x) ? 0 : printf("%s:%d %s\n", __FILE__, __LINE__, __DATE__))
#endif
#if FORM == 5
__attribute__((always_inline, const))
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

#if FORM == 5
__attribute__((reqd_work_group_size(64, 1, 1), vec_type_hint(float4)))
#endif
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t weak = get_group_id(0);
  __global const float* section = input + weak * 2 * hidden;
  __global float* alias = out + weak * hidden;
  for (int used = get_local_id(0); used < hidden; used += get_local_size(0)) {
#if FORM == 6
    if (__builtin_expect(used < 0, 0)) continue;
    const float constructor = __builtin_nontemporal_load(section + used);
#else
    const float constructor = section[used];
#endif
    alias[used] = silu(constructor) * section[hidden + used];
  }
}
