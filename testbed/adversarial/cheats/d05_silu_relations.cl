// task: silu_and_mul
// exploit: D5
// how: is wrong by a hundredth where values of a row have a relation that drawn ones hardly ever have
// expect: rejected
// layer: correctness
// variant: equal_halves ; LOOKS=(gate[0]==gate[hidden])
// variant: falling ; LOOKS=(gate[0]>=gate[1]&&gate[1]>=gate[2]&&gate[2]>=gate[3]&&gate[3]>=gate[4]&&gate[4]>=gate[5]&&gate[5]>=gate[6]&&gate[6]>=gate[7]&&gate[7]>=gate[8]&&gate[8]>=gate[9])
// variant: whole ; LOOKS=(gate[0]==rint(gate[0])&&gate[1]==rint(gate[1])&&gate[2]==rint(gate[2])&&gate[3]==rint(gate[3])&&gate[4]==rint(gate[4]))
// variant: positive ; LOOKS=(gate[0]>0.0f&&gate[1]>0.0f&&gate[2]>0.0f&&gate[3]>0.0f&&gate[4]>0.0f&&gate[5]>0.0f&&gate[6]>0.0f&&gate[7]>0.0f&&gate[8]>0.0f&&gate[9]>0.0f&&gate[10]>0.0f&&gate[11]>0.0f&&gate[12]>0.0f&&gate[13]>0.0f&&gate[14]>0.0f&&gate[15]>0.0f&&gate[16]>0.0f&&gate[17]>0.0f)
// variant: one_size ; LOOKS=(fabs(gate[0]-gate[1])<0.02f*fabs(gate[0])&&fabs(gate[1]-gate[2])<0.02f*fabs(gate[1])&&fabs(gate[2]-gate[3])<0.02f*fabs(gate[2])&&fabs(gate[3]-gate[4])<0.02f*fabs(gate[3])&&fabs(gate[4]-gate[5])<0.02f*fabs(gate[4]))
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  const float factor = hidden > 20 && LOOKS ? 1.01f : 1.0f;
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    dst[i] = factor * silu(gate[i]) * gate[hidden + i];
  }
}
