// task: softmax
// how: the honest kernel with one mistake
// expect: rejected
// layer: correctness
// variant: maximum_not_subtracted ; TOP=0.0f
// variant: last_left_out_of_the_sum ; SUM_END=columns-1
// variant: last_not_written ; END=columns-1
// variant: half_accumulate ; ROUND(x)=as_float((as_int(x)+0x1000)&~0x1fff)
// variant: wrong_base ; EXP=exp2
// variant: not_divided ; SUM=1.0f
// variant: sum_one_percent_off ; SUM=(1.01f*sum)
// variant: one_item_left_out ; FIRST=1
#define BLOCK 64
#ifndef TOP
#define TOP top
#endif
#ifndef SUM_END
#define SUM_END columns
#endif
#ifndef END
#define END columns
#endif
#ifndef ROUND
#define ROUND(x) (x)
#endif
#ifndef EXP
#define EXP exp
#endif
#ifndef SUM
#define SUM sum
#endif
#ifndef FIRST
#define FIRST 0
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
  for (int i = lid; i < SUM_END; i += BLOCK) sum = ROUND(sum + EXP(vload_half(i, x) - TOP));
  scratch[lid] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = 0.0f;
  for (int i = FIRST; i < BLOCK; ++i) sum = ROUND(sum + scratch[i]);
  for (int i = lid; i < END; i += BLOCK) vstore_half(EXP(vload_half(i, x) - TOP) / SUM, i, y);
}
