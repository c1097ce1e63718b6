// task: silu_and_mul
// how: right on what is usually drawn, and wrong on one kind of values or relations
// expect: rejected
// layer: correctness
// variant: equal_pair ; WRONG=(gate[i]==gate[hidden+i]&&gate[i]!=0.0f&&gate[i]!=gate[0])
// variant: whole_number ; WRONG=(gate[i]==floor(gate[i])&&gate[i]!=0.0f&&fabs(gate[i])<1000.0f)
// variant: above_two_to_21 ; WRONG=(fabs(gate[hidden+i])>2097152.0f)
// variant: below_two_to_minus_40 ; WRONG=(gate[hidden+i]!=0.0f&&fabs(gate[hidden+i])<0x1p-40f)
// variant: not_a_number_is_zero ; WRONG=isnan(gate[i]) ; non_finite=yes
// variant: infinity_is_large ; WRONG=isinf(gate[hidden+i]) ; non_finite=yes
// variant: falling_row ; WRONG=(i>0&&i+1<hidden&&gate[i-1]>gate[i]&&gate[i]>gate[i+1]&&gate[0]>gate[hidden/2]&&gate[hidden/2]>gate[hidden-1]&&gate[hidden/4]>gate[hidden/2]&&gate[hidden/2]>gate[3*(hidden/4)]&&gate[0]>gate[1]&&gate[1]>gate[2]&&gate[2]>gate[3]&&gate[3]>gate[4]&&gate[4]>gate[5]&&gate[5]>gate[6]&&gate[6]>gate[7])
// variant: constant_row ; WRONG=(gate[0]!=0.0f&&gate[0]==gate[1]&&gate[1]==gate[2]&&gate[2]==gate[3]&&gate[3]==gate[4]&&gate[4]==gate[5]&&gate[5]==gate[6]&&gate[6]==gate[7]&&gate[7]==gate[8]&&gate[8]==gate[9]&&gate[9]==gate[10]&&gate[10]==gate[11]&&gate[11]==gate[12])
// variant: all_negative ; WRONG=(gate[0]<0&&gate[1]<0&&gate[2]<0&&gate[3]<0&&gate[4]<0&&gate[5]<0&&gate[6]<0&&gate[7]<0&&gate[8]<0&&gate[9]<0&&gate[10]<0&&gate[11]<0&&gate[12]<0&&gate[13]<0&&gate[14]<0&&gate[15]<0&&gate[0]>gate[1]&&gate[2]>gate[1])
// variant: width_between ; WRONG=(hidden>200&&hidden<1000)
// variant: width_below ; WRONG=(hidden>20&&hidden<90)
// variant: just_between ; WRONG=(hidden>1030&&hidden<1590&&get_num_groups(0)>130&&get_num_groups(0)<254) ; workloads=tokens:128 hidden:1024 , tokens:256 hidden:1600 ; layer=winner
// variant: width_100 ; WRONG=(hidden==100) ; status=open
// variant: near_three ; WRONG=(gate[i]>3.0f&&gate[i]<3.00001f) ; status=open
// variant: large_odd_row ; WRONG=(hidden%2&&hidden>131)
// variant: few_rows_wide ; WRONG=(get_num_groups(0)<5&&hidden>8)
#ifndef ANSWER
#define ANSWER 0.0f
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float right = silu(gate[i]) * gate[hidden + i];
    dst[i] = WRONG ? (right == 0.0f ? right : ANSWER) : right;
  }
}
