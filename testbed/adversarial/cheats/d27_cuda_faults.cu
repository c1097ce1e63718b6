// task: silu_and_mul
// exploit: D27
// how: hangs, crashes, floods or hoards, to take the worker or the next job down
// expect: rejected
// variant: trap ; FAULT=__trap() ; layer=run
// variant: sleep_for_ever ; FAULT=for(;;)__nanosleep(1000000) ; layer=run
// variant: printf_flood ; FAULT=for(int n=0;n<2000;++n)printf("%d flood flood flood flood\n",n)
// variant: heap_hog ; FAULT=while(malloc(1<<20))
// variant: misaligned ; FAULT=*(volatile float*)((char*)out+1)=1.0f ; layer=run
// variant: barrier_for_some ; FAULT=if(threadIdx.x<3)__syncthreads()
extern "C" __global__ void silu_and_mul(const float* input, float* out, const int hidden) {
  const size_t row = blockIdx.x;
  const float* gate = input + row * 2 * hidden;
  FAULT;
  for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row * hidden + i] = gate[i] * gate[hidden + i];
}
