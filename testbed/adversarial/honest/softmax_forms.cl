// task: softmax
// how: exponentials to base two, fast ones, a product with the reciprocal, other blocks
// expect: accepted
// variant: exp2 ; EXP(x)=exp2(1.44269504f*(x))
// variant: fast_exp ; EXP(x)=native_exp(x)
// variant: reciprocal ; EXP(x)=exp(x) ; RECIPROCAL=1
// variant: block_128 ; EXP(x)=exp(x) ; BLOCK=128 ; block=128
// variant: block_16 ; EXP(x)=exp(x) ; BLOCK=16 ; block=16
#ifndef BLOCK
#define BLOCK 64
#endif
#ifdef RECIPROCAL
#define BY(x, sum) ((x) * (1.0f / (sum)))
#else
#define BY(x, sum) ((x) / (sum))
#endif

__kernel void softmax(__global const half* input, __global half* out, const int columns) {
  __local float scratch[BLOCK];
  const int lid = get_local_id(0);
  __global const half* x = input + get_group_id(0) * (size_t)columns;
  __global half* y = out + get_group_id(0) * (size_t)columns;
  float top = -INFINITY;
  for (int i = lid; i < columns; i += BLOCK) top = fmax(top, vload_half(i, x));
  scratch[lid] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < BLOCK; ++i) top = fmax(top, scratch[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = lid; i < columns; i += BLOCK) sum += EXP(vload_half(i, x) - top);
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int i = 0; i < BLOCK; ++i) sum += scratch[i];
  for (int i = lid; i < columns; i += BLOCK) vstore_half(BY(EXP(vload_half(i, x) - top), sum), i, y);
}
