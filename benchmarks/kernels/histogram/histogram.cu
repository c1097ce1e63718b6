// Counts of 256 bins: every block counts ITEMS packs of VEC bytes a thread in COPIES histograms of its own.
#if VEC == 16
typedef uint4 Pack;
#elif VEC == 8
typedef uint2 Pack;
#elif VEC == 4
typedef unsigned int Pack;
#else
typedef unsigned char Pack;
#endif

extern "C" __global__ void histogram(const unsigned char* __restrict__ x, int* __restrict__ counts, int n) {
  __shared__ int own[COPIES][256];
  for (int bin = threadIdx.x; bin < COPIES * 256; bin += BLOCK) (&own[0][0])[bin] = 0;
  __syncthreads();

  int* mine = own[SPREAD ? threadIdx.x % COPIES : threadIdx.x / 32 % COPIES];
  const int packs = n / VEC;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int index = (blockIdx.x * ITEMS + i) * BLOCK + threadIdx.x;
    if (index < packs) {
      const Pack pack = reinterpret_cast<const Pack*>(x)[index];
#pragma unroll
      for (int v = 0; v < VEC; ++v) atomicAdd(mine + reinterpret_cast<const unsigned char*>(&pack)[v], 1);
    }
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += BLOCK) {
    int sum = 0;
#pragma unroll
    for (int copy = 0; copy < COPIES; ++copy) sum += own[copy][bin];
    if (sum) atomicAdd(counts + bin, sum);
  }
}
