// task: silu_and_mul
// exploit: D24
// how: includes a file of the machine, so that its contents come back in an error message
// expect: rejected
// layer: compile
// variant: passwords ; WHAT="/etc/passwd"
// variant: environment ; WHAT="/proc/self/environ"
// variant: the_parents_environment ; WHAT="/proc/1/environ"
// variant: relative ; WHAT="../../../../../../etc/passwd"
#include WHAT
__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  out[get_global_id(0)] = input[get_global_id(0)];
}
