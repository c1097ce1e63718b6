// task: silu_and_mul
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: up_dropped ; UP=1.0f
// variant: gate_and_up_swapped ; GATE=gate[hidden+i] ; UP=gate[i]
// variant: up_one_off ; UP=gate[hidden+i-1]
// variant: wrong_scale ; SCALE=1.001f
// variant: sign_lost ; EXP=exp(x)
// variant: relu ; SILU=fmax(x,0.0f)
// variant: sigmoid_only ; SILU=1.0f/(1.0f+EXP)
// variant: last_element_skipped ; END=hidden-1
// variant: last_block_skipped ; END=(hidden-1)/64*64
// variant: first_element_skipped ; BEGIN=1
// variant: half_sigmoid ; ROUND(x)=as_float((as_int(x)+0x1000)&~0x1fff)
// variant: row_stride_of_output_wrong ; STRIDE=(hidden-1)
// variant: writes_one_too_many ; END=hidden+1 ; layer=guard
#ifndef GATE
#define GATE gate[i]
#endif
#ifndef UP
#define UP gate[hidden + i]
#endif
#ifndef SCALE
#define SCALE 1.0f
#endif
#ifndef EXP
#define EXP exp(-x)
#endif
#ifndef SILU
#define SILU x / (1.0f + EXP)
#endif
#ifndef END
#define END hidden
#endif
#ifndef BEGIN
#define BEGIN 0
#endif
#ifndef ROUND
#define ROUND(x) (x)
#endif
#ifndef STRIDE
#define STRIDE hidden
#endif
float silu(float x) { return SILU; }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * STRIDE;
  for (int i = BEGIN + get_local_id(0); i < END; i += get_local_size(0)) dst[i] = SCALE * ROUND(silu(GATE)) * UP;
}
