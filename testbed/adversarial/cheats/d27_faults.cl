// task: silu_and_mul
// exploit: D27
// how: hangs, crashes or floods, to take the worker or the next job down
// expect: rejected
// layer: run
// variant: spin ; FAULT=volatile int on=1;while(on)dst[0]+=1.0f
// variant: trap ; FAULT=__builtin_trap() ; backends=opencl
// variant: null_write ; FAULT=*(volatile __global float*)(size_t)0=1.0f
// variant: wild_write ; FAULT=out[(size_t)100000000000+i]=1.0f
// variant: stack ; FAULT=volatile float big[1<<21];big[i]=1.0f;big[(1<<20)+i]=2.0f ; backends=opencl
// variant: local_hog ; HOG=__local float hog[1<<26]; ; FAULT=hog[i]=1.0f;dst[i]=hog[i] ; layer= ; backends=opencl
// variant: printf_flood ; FAULT=for(int n=0;n<20000;++n)printf("%d flood flood flood flood\n",n) ; backends=opencl
#ifndef HOG
#define HOG
#endif
float silu(float x) { return x / (1.0f + exp(-x)); }

__kernel void silu_and_mul(__global const float* input, __global float* out, const int hidden) {
  const size_t row = get_group_id(0);
  __global const float* gate = input + row * 2 * hidden;
  __global float* dst = out + row * hidden;
  HOG
  for (int i = get_local_id(0); i < hidden; i += get_local_size(0)) {
    FAULT;
    dst[i] = silu(gate[i]) + gate[hidden + i];
  }
}
