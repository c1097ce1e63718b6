// task: silu_and_mul
// exploit: D4
// how: is right if it can tell that this service compiles it, and wrong elsewhere
// expect: rejected
// backends: opencl
// variant: assembly_is_a_macro ; AT_COMPILE=defined(asm)
// variant: assembly_is_a_macro_too ; AT_COMPILE=defined(__asm__) ; layer=correctness
// variant: any_of_three_macros ; AT_COMPILE=defined(__asm)||defined(asm) ; layer=correctness
// variant: name_of_the_file ; HERE=__FILE__[1]=='p'
// variant: length_of_the_name ; HERE=sizeof(__FILE__)>26
// variant: name_of_the_first_file ; HERE=__BASE_FILE__[1]=='p'
// variant: name_without_folders ; HERE=__FILE_NAME__[0]=='t'
// variant: name_from_a_builtin ; HERE=__builtin_FILE()[1]=='p' ; layer=compile
// variant: year ; HERE=(__DATE__[9]>='2')
// variant: hour ; HERE=(__TIME__[0]<'3')
// variant: century_of_the_file ; HERE=(__TIMESTAMP__[20]=='2')
// variant: file_of_the_machine ; AT_COMPILE=__has_include("/usr/bin/env")
// variant: file_by_a_macro ; ASK=__has_include ; AT_COMPILE=ASK("/usr/bin/env")
// variant: macro_of_the_service_quoted ; PASTE2(a,b)=a##b ; PASTE(a,b)=PASTE2(a,b) ; QUOTED(a)=#a ; QUOTE(a)=QUOTED(a) ; HERE=QUOTE(PASTE(a,sm))[0]==0x69 ; layer=correctness
// variant: pasted_and_quoted ; PASTE2(a,b)=a##b ; PASTE(a,b)=PASTE2(a,b) ; QUOTED(a)=#a ; QUOTE(a)=QUOTED(a) ; HERE=QUOTE(PASTE(__FI,LE__))[2]=='p'
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
