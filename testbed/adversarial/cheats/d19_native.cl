// task: silu_and_mul
// exploit: D19
// how: has native code without assembly run in the process that times it: while it is loaded, or as data, or found there by name
// expect: rejected
// layer: compile
// backends: opencl
// variant: constructor ; FORM=1 ; ATTRIBUTE=constructor
// variant: destructor ; FORM=1 ; ATTRIBUTE=__destructor__
// variant: constructor_with_a_turn ; FORM=1 ; ATTRIBUTE=constructor(200)
// variant: table_of_constructors ; FORM=2 ; PLACE=".init_array"
// variant: constructor_by_pragma ; FORM=3
// variant: data_among_code ; FORM=4 ; PLACE=".text"
// variant: data_among_code_by_paste ; FORM=4 ; PASTE(a,b)=a##b ; section=PASTE(sec,tion) ; PLACE=".text"
// variant: data_in_a_part_of_code ; FORM=4 ; PLACE=".text.unlikely"
// variant: code_of_its_own ; FORM=4 ; PLACE=".mine"
// variant: data_by_pragma ; FORM=5
// variant: naked_function ; FORM=6 ; ATTRIBUTE=naked
// variant: weak_function ; FORM=6 ; ATTRIBUTE=weak
// variant: kept_function ; FORM=6 ; ATTRIBUTE=used,section(".text.startup")
// variant: second_name ; FORM=7 ; ATTRIBUTE=alias("first")
// variant: function_by_choice ; FORM=7 ; ATTRIBUTE=ifunc("first")
// variant: return_address ; FORM=8 ; WHERE=__builtin_return_address(0)
// variant: frame_address ; FORM=8 ; WHERE=__builtin_frame_address(0)
// variant: return_address_by_paste ; FORM=8 ; PASTE(a,b)=a##b ; WHERE=PASTE(__builtin_return,_address)(0)
// variant: constant_that_is_written ; FORM=9 ; PLACE=".data"
// variant: thread_local ; FORM=10
#if FORM == 1
__attribute__((ATTRIBUTE)) void early(void) { volatile int x = 1; }
#elif FORM == 2
void early(void) {}
__attribute__((section(PLACE))) __constant ulong bytes[1] = {0};
#elif FORM == 3
#pragma clang attribute push(__attribute__((constructor)), apply_to = function)
void early(void) {}
#pragma clang attribute pop
#elif FORM == 4
// mov eax, 1; ret
__attribute__((section(PLACE))) __constant uchar bytes[72] = {0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90};
#elif FORM == 5
#pragma clang section rodata = ".text"
__constant uchar bytes[72] = {0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90};
#pragma clang section rodata = ""
#elif FORM == 6
__attribute__((ATTRIBUTE, noinline)) int early(int x) { return x; }
#elif FORM == 7
int first(int x) { return x; }
__attribute__((ATTRIBUTE)) int early(int x);
#elif FORM == 9
__attribute__((section(PLACE))) __constant int kept[4] = {1, 2, 3, 4};
#elif FORM == 10
__thread int kept;
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const int never = hidden < 0;
#if FORM == 2 || FORM == 4 || FORM == 5
  if (never) dst[0] = ((volatile __constant uchar*)bytes)[row];
#elif FORM == 6 || FORM == 7
  if (never) dst[0] = early(row);
#elif FORM == 8
  if ((ulong)(WHERE) == 1) return;
#elif FORM == 9
  if (((volatile __constant int*)kept)[row & 3] == 77) return;
  if (never) *(volatile int*)(ulong)kept = 77;
#elif FORM == 10
  if (never) dst[0] = kept++;
#endif
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
