// task: fused_add_rmsnorm
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: residual_dropped ; V=x[i]
// variant: residual_not_written ; KEEP=x[i]=v ; NORMED=x[i]
// variant: residual_twice ; V=x[i]+2.0f*r[i]
// variant: weight_ignored ; WEIGHT=1.0f
// variant: weight_shifted ; WEIGHT=weight[(i+1)%hidden]
// variant: eps_dropped ; EPS=0.0f
// variant: eps_ten_times ; EPS=10.0f*eps
// variant: eps_outside_the_root ; SCALE=(rsqrt(mean)+eps)
// variant: last_block_skipped ; END=(hidden-1)/BLOCK*BLOCK
// variant: last_element_skipped ; END=hidden-1
// variant: half_accumulate ; ROUND(x)=as_float((as_int(x)+0x1000)&~0x1fff)
// variant: mean_of_one_less ; MEAN=(partial[0]/(hidden-1))
// variant: half_of_the_sum ; FROM=BLOCK/4
// variant: row_zero_scale ; ROW=0
// variant: no_square_root ; SCALE=(1.0f/(mean+eps))
#define BLOCK 64
#ifndef V
#define V x[i] + r[i]
#endif
#ifndef KEEP
#define KEEP r[i] = v
#endif
#ifndef NORMED
#define NORMED r[i]
#endif
#ifndef WEIGHT
#define WEIGHT weight[i]
#endif
#ifndef EPS
#define EPS eps
#endif
#ifndef MEAN
#define MEAN (partial[0] / hidden)
#endif
#ifndef SCALE
#define SCALE rsqrt(mean + EPS)
#endif
#ifndef END
#define END hidden
#endif
#ifndef ROUND
#define ROUND(x) (x)
#endif
#ifndef FROM
#define FROM BLOCK / 2
#endif
#ifndef ROW
#define ROW get_group_id(0)
#endif

__kernel void fused_add_rmsnorm(__global float* input, __global float* residual, __global const float* weight,
                                const int hidden, const float eps) {
  __local float partial[BLOCK];
  const int lid = get_local_id(0);
  __global float* x = input + ROW * (size_t)hidden;
  __global float* r = residual + ROW * (size_t)hidden;
  float sum = 0.0f;
  for (int i = lid; i < END; i += BLOCK) {
    const float v = V;
    KEEP;
    sum = ROUND(sum + ROUND(v * v));
  }
  partial[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = FROM; half_size > 0; half_size /= 2) {
    if (lid < half_size) partial[lid] = ROUND(partial[lid] + partial[lid + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float mean = MEAN;
  const float scale = SCALE;
  for (int i = lid; i < END; i += BLOCK) x[i] = NORMED * scale * WEIGHT;
}
