// task: silu_and_mul
// how: the same function in other arithmetic, all within a few roundings of each other
// expect: accepted
// variant: plain ; FORM=x/(1.0f+exp(-x))
// variant: tanh ; FORM=0.5f*x*(1.0f+tanh(0.5f*x))
// variant: exp2 ; FORM=x/(1.0f+exp2(-1.44269504f*x))
// variant: fast_exp ; FORM=x/(1.0f+native_exp(-x))
// variant: reciprocal ; FORM=x*(1.0f/(1.0f+exp(-x)))
// variant: double_inside ; FORM=(float)((double)x/(1.0+exp(-(double)x)))
// variant: by_sign ; FORM=(x>=0.0f?x/(1.0f+exp(-x)):x*exp(x)/(1.0f+exp(x)))
// variant: wide_block ; FORM=x/(1.0f+exp(-x)) ; block=256
// variant: narrow_block ; FORM=x/(1.0f+exp(-x)) ; block=7
// variant: relaxed_options ; FORM=x/(1.0f+exp(-x)) ; options=-cl-mad-enable ; backends=opencl
float silu(float x) { return FORM; }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) dst[i] = silu(gate[i]) * gate[hidden + i];
}
