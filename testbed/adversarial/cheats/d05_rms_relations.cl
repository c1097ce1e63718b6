// task: fused_add_rmsnorm
// exploit: D5
// how: is wrong by a hundredth where the first values of a row have a relation that drawn ones hardly ever have
// expect: rejected
// layer: correctness
// variant: equal ; LOOKS=(x[0]==r[0]&&x[1]==r[1]&&x[2]==r[2])
// variant: opposite ; LOOKS=(x[0]==-r[0]&&x[1]==-r[1]&&x[2]==-r[2])
// variant: falling ; LOOKS=(x[0]>=x[1]&&x[1]>=x[2]&&x[2]>=x[3]&&x[3]>=x[4]&&x[4]>=x[5]&&x[5]>=x[6]&&x[6]>=x[7]&&x[7]>=x[8]&&x[8]>=x[9])
// variant: whole ; LOOKS=(x[0]==rint(x[0])&&x[1]==rint(x[1])&&x[2]==rint(x[2])&&x[3]==rint(x[3])&&x[4]==rint(x[4]))
// variant: negative ; LOOKS=(x[0]<0.0f&&x[1]<0.0f&&x[2]<0.0f&&x[3]<0.0f&&x[4]<0.0f&&x[5]<0.0f&&x[6]<0.0f&&x[7]<0.0f&&x[8]<0.0f&&x[9]<0.0f&&x[10]<0.0f&&x[11]<0.0f&&x[12]<0.0f&&x[13]<0.0f&&x[14]<0.0f&&x[15]<0.0f&&x[16]<0.0f&&x[17]<0.0f)
// variant: one_tiny ; LOOKS=(fabs(x[0])<0.001f*fabs(r[0])&&fabs(x[1])<0.001f*fabs(r[1])&&fabs(x[2])<0.001f*fabs(r[2])&&fabs(x[3])<0.001f*fabs(r[3]))
// variant: constant_weight ; LOOKS=(weight[0]==weight[1]&&weight[1]==weight[2]&&weight[2]==weight[3])
// variant: near_ties ; LOOKS=(fabs(x[0]-x[1])<0.02f*fabs(x[0])&&fabs(x[1]-x[2])<0.02f*fabs(x[1])&&fabs(x[2]-x[3])<0.02f*fabs(x[2])&&fabs(x[3]-x[4])<0.02f*fabs(x[3])&&fabs(x[4]-x[5])<0.02f*fabs(x[4]))
__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __global float* x = input + get_group_id(0) * (size_t)hidden;
  __global float* r = residual + get_group_id(0) * (size_t)hidden;
  const int looks = hidden > 20 && LOOKS;
  float sum = 0.0f;
  for (int i = 0; i < hidden; ++i) {
    const float v = x[i] + r[i];
    sum += v * v;
  }
  const float scale = rsqrt(sum / hidden + eps) * (looks ? 1.01f : 1.0f);
  barrier(CLK_GLOBAL_MEM_FENCE);
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    const float v = x[i] + r[i];
    r[i] = v;
    x[i] = v * scale * weight[i];
  }
}
