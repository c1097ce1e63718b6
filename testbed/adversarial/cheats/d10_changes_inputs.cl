// task: silu_and_mul
// exploit: D10
// how: changes the input, so that a later reference would agree with it
// expect: rejected
// layer: guard
// variant: zeroes_all ; CHANGES=1 ; RESULT=0.0f
// variant: one_element ; CHANGES=(row==0&&i==77) ; RESULT=silu(g)*u
// variant: low_bits ; CHANGES=1 ; TO=as_float(as_int(g)&~1) ; RESULT=silu(as_float(as_int(g)&~1))*u
// variant: the_last ; CHANGES=(row+1==get_num_groups(0)&&i+1==hidden) ; RESULT=silu(g)*u
#ifndef TO
#define TO 0.0f
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global float* gate = input + row * 2 * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float g = gate[i], u = gate[hidden + i];
    if (CHANGES) gate[i] = TO;
    out[row * hidden + i] = RESULT;
  }
}
